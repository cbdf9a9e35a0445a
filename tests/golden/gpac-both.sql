-- GPAC, section 5: the whole form, SELECT, FROM, WHERE, GPAC-IN and GPAC-kNN, both static
REGISTER QUERY whole AS
SELECT *
FROM MovingObjects
WHERE type = 'truck'
GPAC-IN (0.2, 0.8, 0.4, 0.6)
GPAC-kNN (3, 0.5, 0.25)

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "neighbours": {"kind": "nearest", "k": 3, "place": {"x": 0.5, "y": 0.25}}, "where": "type = 'truck'"}

REGISTER QUERY whole AS SELECT * FROM MovingObjects WHERE type = 'truck' INSIDE (0.2, 0.6, 0.4, 0.8) KNN (3, 0.5, 0.25)
