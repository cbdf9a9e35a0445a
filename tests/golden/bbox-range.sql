-- BBoxDB, sections 5.2 and 4.3: a range query with every transformation, in the order written
REGISTER QUERY transformed AS
SELECT *
FROM dgroup_car
INSIDE (0, 0, 10, 10)
USING enlarge(50 m), ENLARGE_VALUE(0.01), enlarge_factor(0.5), box(10, 10, 1, 1), filter('property', 'state:it''s free')
COMPARE WITH (2, 2, 5, 5)

{"v": 3, "stream": "dgroup_car", "inside": {"kind": "box", "minx": 0.0, "miny": 0.0, "maxx": 10.0, "maxy": 10.0}, "transforms": [{"kind": "metres", "amount": 50.0}, {"kind": "value", "amount": 0.01}, {"kind": "factor", "amount": 0.5}, {"kind": "box", "box": {"minx": 1.0, "miny": 1.0, "maxx": 10.0, "maxy": 10.0}}, {"kind": "filter", "text": "state:it's free", "name": "property"}], "compare": {"box": {"minx": 2.0, "miny": 2.0, "maxx": 5.0, "maxy": 5.0}}}

REGISTER QUERY transformed AS SELECT * FROM dgroup_car INSIDE (0, 0, 10, 10) COMPARE WITH (2, 2, 5, 5) USING enlarge(50 m), enlarge_value(0.01), enlarge_factor(0.5), box(1, 1, 10, 10), filter('property', 'state:it''s free')
