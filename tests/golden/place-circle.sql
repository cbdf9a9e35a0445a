-- PLACE, section 3.2: a circle by its centre and radius, and the nearest in it
REGISTER QUERY query_name AS
SELECT ObjectID
FROM MovingObjects
WHERE type = 'Car'
INSIDE CIRCLE (0.3, 0.7, 0.1)
kNN (2, 0.3, 0.7)

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "circle", "x": 0.3, "y": 0.7, "radius_m": 0.1}, "neighbours": {"kind": "nearest", "k": 2, "place": {"x": 0.3, "y": 0.7}}, "where": "type = 'Car'", "columns": [["ObjectID", "ObjectID"]]}

REGISTER QUERY query_name AS SELECT ObjectID FROM MovingObjects WHERE type = 'Car' INSIDE CIRCLE (0.3, 0.7, 0.1 m) KNN (2, 0.3, 0.7)
