-- CQL: the last fixes of each object; what leaves is told
REGISTER QUERY rows AS SELECT DSTREAM(*) FROM taxis [ROWS 5]

{"v": 3, "stream": "taxis", "frame": {"sliding": [{"range": {"by": "rows", "amount": 5.0}}]}, "emit": "dstream"}

REGISTER QUERY rows AS SELECT DSTREAM(*) FROM taxis [ROWS 5]
