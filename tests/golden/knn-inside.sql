-- the nearest among those inside that are free
REGISTER QUERY free_taxis AS SELECT * FROM taxis KNN (3, -8.61, 41.15) WHERE state = 'free' INSIDE (-8.7, 41.1, -8.5, 41.2)

{"v": 3, "stream": "taxis", "inside": {"kind": "box", "minx": -8.7, "miny": 41.1, "maxx": -8.5, "maxy": 41.2}, "neighbours": {"kind": "nearest", "k": 3, "place": {"x": -8.61, "y": 41.15}}, "where": "state = 'free'"}

REGISTER QUERY free_taxis AS SELECT * FROM taxis WHERE state = 'free' INSIDE (-8.7, 41.1, -8.5, 41.2) KNN (3, -8.61, 41.15)
