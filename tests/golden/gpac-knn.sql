-- GPAC, section 5: the static kNN query (k, x, y)
REGISTER QUERY nearest AS SELECT * FROM moving_objects GPAC-kNN (3, 0.5, 0.25)

{"v": 3, "stream": "moving_objects", "neighbours": {"kind": "nearest", "k": 3, "place": {"x": 0.5, "y": 0.25}}}

REGISTER QUERY nearest AS SELECT * FROM moving_objects KNN (3, 0.5, 0.25)
