-- BBoxDB, section 1.2 (2): which taxis are located near a passenger?
REGISTER QUERY taxis_near AS
SELECT * FROM taxis WHERE state = 'free' INSIDE CIRCLE (-8.61, 41.145, 500 metres) KNN (5, -8.61, 41.145)

{"v": 3, "stream": "taxis", "inside": {"kind": "circle", "x": -8.61, "y": 41.145, "radius_m": 500.0}, "neighbours": {"kind": "nearest", "k": 5, "place": {"x": -8.61, "y": 41.145}}, "where": "state = 'free'"}

REGISTER QUERY taxis_near AS SELECT * FROM taxis WHERE state = 'free' INSIDE CIRCLE (-8.61, 41.145, 500 m) KNN (5, -8.61, 41.145)
