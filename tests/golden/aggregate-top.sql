-- the greatest groups of each key, with values that are no numbers
REGISTER QUERY fullest AS SELECT state, driver, count(*) AS n, last(speed_mps), collect(object) AS who FROM taxis GROUP BY state, driver ORDER BY N desc LIMIT 3 PER State WINDOW 10 minutes

{"v": 3, "stream": "taxis", "window": {"seconds": 600.0}, "aggregate": {"function": "several", "values": [{"name": "n", "function": "count"}, {"name": "last(speed_mps)", "function": "last", "argument": "speed_mps"}, {"name": "who", "function": "collect", "argument": "object"}], "keys": [["state", "state"], ["driver", "driver"]], "top": {"value": "n", "limit": 3, "descending": true, "per": "state"}}}

REGISTER QUERY fullest AS SELECT state, driver, COUNT(*) AS n, LAST(speed_mps), COLLECT(object) AS who FROM taxis GROUP BY state, driver ORDER BY n DESC LIMIT 3 PER state WINDOW 600 s
