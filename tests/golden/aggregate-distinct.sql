-- distinct values counted
REGISTER QUERY drivers AS SELECT COUNT(DISTINCT t.driver) FROM taxis t KNN (10, -8.61, 41.15)

{"v": 3, "stream": "taxis", "neighbours": {"kind": "nearest", "k": 10, "place": {"x": -8.61, "y": 41.15}}, "aggregate": {"function": "count_distinct", "argument": "driver"}}

REGISTER QUERY drivers AS SELECT COUNT(DISTINCT driver) FROM taxis KNN (10, -8.61, 41.15)
