-- PLACE, section 4.1: the same with our names; an object counts once
REGISTER QUERY passed AS
SELECT COUNT(object)
FROM moving_objects
WHERE type = 'Car'
INSIDE (0.2, 0.6, 0.4, 0.8)
WINDOW 1 hour

{"v": 3, "stream": "moving_objects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "window": {"seconds": 3600.0}, "aggregate": {"function": "count_distinct"}, "where": "type = 'Car'"}

REGISTER QUERY passed AS SELECT COUNT(DISTINCT object) FROM moving_objects WHERE type = 'Car' INSIDE (0.2, 0.6, 0.4, 0.8) WINDOW 3600 s
