-- BBoxDB, section 5.5.3: which ships are heading to an island? Negative matches inside a larger space
REGISTER QUERY island AS
SELECT *
FROM ships
INSIDE (7.6, 54.0, 8.2, 54.4)
COMPARE WITH NOT (7.8, 54.15, 7.95, 54.21)

{"v": 3, "stream": "ships", "inside": {"kind": "box", "minx": 7.6, "miny": 54.0, "maxx": 8.2, "maxy": 54.4}, "compare": {"box": {"minx": 7.8, "miny": 54.15, "maxx": 7.95, "maxy": 54.21}, "negative": true}}

REGISTER QUERY island AS SELECT * FROM ships INSIDE (7.6, 54, 8.2, 54.4) COMPARE WITH NOT (7.8, 54.15, 7.95, 54.21)
