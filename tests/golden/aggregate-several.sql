-- several values by several keys, one of them with another name
REGISTER QUERY states AS SELECT driver, upper(state) AS s, COUNT(*) AS n, QUANTILE(speed_mps, .9) FROM taxis GROUP BY upper(state), driver

{"v": 3, "stream": "taxis", "aggregate": {"function": "several", "values": [{"name": "n", "function": "count"}, {"name": "quantile(speed_mps, 0.9)", "function": "quantile", "argument": "speed_mps", "share": 0.9}], "keys": [["s", "UPPER(state)"], ["driver", "driver"]]}}

REGISTER QUERY states AS SELECT UPPER(state) AS s, driver, COUNT(*) AS n, QUANTILE(speed_mps, 0.9) FROM taxis GROUP BY UPPER(state), driver
