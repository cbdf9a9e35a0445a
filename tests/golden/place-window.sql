-- PLACE, section 4.1 (Q1), as printed: the number of cars that passed by region R in the last hour
CREATE AREA R AS (0.2, 0.6, 0.4, 0.8);
REGISTER QUERY Q1 AS
SELECT COUNT(ObjectID)
FROM MovingObjects
WHERE type = Car
INSIDE R
WINDOW 1 hour

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "window": {"seconds": 3600.0}, "aggregate": {"function": "count", "argument": "ObjectID"}, "where": "type = Car"}

REGISTER QUERY Q1 AS SELECT COUNT(ObjectID) FROM MovingObjects WHERE type = Car INSIDE (0.2, 0.6, 0.4, 0.8) WINDOW 3600 s
