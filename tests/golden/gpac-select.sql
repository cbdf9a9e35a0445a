-- GPAC, section 6.1.1, as printed: all trucks that are within MyArea; top left and bottom right corner
CREATE AREA MyArea AS (0.2, 0.8, 0.4, 0.6);
REGISTER QUERY trucks AS
SELECT M.ObjectID
FROM MovingObjects M
WHERE M.type = "truck"
GPAC-IN MyArea

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "where": "type = truck", "columns": [["ObjectID", "ObjectID"]]}

REGISTER QUERY trucks AS SELECT ObjectID FROM MovingObjects WHERE type = truck INSIDE (0.2, 0.6, 0.4, 0.8)
