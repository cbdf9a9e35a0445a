-- PLACE, section 4.2: the number of cars in a certain area
REGISTER QUERY cars AS
SELECT COUNT(object)
FROM moving_objects
WHERE type = 'Car'
INSIDE (0.2, 0.6, 0.4, 0.8)

{"v": 3, "stream": "moving_objects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "aggregate": {"function": "count_distinct"}, "where": "type = 'Car'"}

REGISTER QUERY cars AS SELECT COUNT(DISTINCT object) FROM moving_objects WHERE type = 'Car' INSIDE (0.2, 0.6, 0.4, 0.8)
