-- a rectangle by two corners in either order
REGISTER QUERY harbour AS SELECT * FROM ships INSIDE (10.2, 57.9, 9.8, 57.1)

{"v": 3, "stream": "ships", "inside": {"kind": "box", "minx": 9.8, "miny": 57.1, "maxx": 10.2, "maxy": 57.9}}

REGISTER QUERY harbour AS SELECT * FROM ships INSIDE (9.8, 57.1, 10.2, 57.9)
