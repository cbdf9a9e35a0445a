-- Flink, ksqlDB: a session window; what each object did since it paused
REGISTER QUERY trips AS SELECT object, COUNT(*) AS n FROM taxis [SESSION 10 min] GROUP BY object

{"v": 3, "stream": "taxis", "aggregate": {"function": "several", "values": [{"name": "n", "function": "count"}], "keys": [["object", "object"]]}, "frame": {"session_s": 600.0}}

REGISTER QUERY trips AS SELECT object, COUNT(*) AS n FROM taxis [SESSION 600 s] GROUP BY object
