-- one aggregate, what it is grouped by beside it
REGISTER QUERY by_state AS SELECT state, AVG(speed_mps) FROM taxis WINDOW 100 TUPLES GROUP BY state

{"v": 3, "stream": "taxis", "window": {"tuples": 100}, "aggregate": {"function": "avg", "argument": "speed_mps", "group": "state"}}

REGISTER QUERY by_state AS SELECT AVG(speed_mps) FROM taxis GROUP BY state WINDOW 100 TUPLES
