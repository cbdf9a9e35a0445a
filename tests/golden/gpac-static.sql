-- GPAC, section 5: the static range query (x1, y1, x2, y2), top left and bottom right corner
REGISTER QUERY static_range AS SELECT ObjectID FROM MovingObjects WHERE type = 'truck' GPAC-IN (0.2, 0.8, 0.4, 0.6)

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "where": "type = 'truck'", "columns": [["ObjectID", "ObjectID"]]}

REGISTER QUERY static_range AS SELECT ObjectID FROM MovingObjects WHERE type = 'truck' INSIDE (0.2, 0.6, 0.4, 0.8)
