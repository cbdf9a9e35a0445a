-- whose nearest neighbour is this taxi?
REGISTER QUERY mine AS SELECT * FROM taxis REVERSE KNN ('M', 't1')

{"v": 3, "stream": "taxis", "neighbours": {"kind": "reverse", "place": {"focal": "t1"}}}

REGISTER QUERY mine AS SELECT * FROM taxis REVERSE KNN ('M', 't1')
