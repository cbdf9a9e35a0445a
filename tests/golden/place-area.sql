-- PLACE, section 4.2 (Q2): the number of cars in a certain area; Q1 without its window
CREATE AREA R AS (0.2, 0.6, 0.4, 0.8);
REGISTER QUERY Q2 AS
SELECT COUNT(ObjectID)
FROM MovingObjects
WHERE type = Car
INSIDE R

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "aggregate": {"function": "count", "argument": "ObjectID"}, "where": "type = Car"}

REGISTER QUERY Q2 AS SELECT COUNT(ObjectID) FROM MovingObjects WHERE type = Car INSIDE (0.2, 0.6, 0.4, 0.8)
