-- every way to write a number; a box without extent is a point
register query "a point, 1" as select * from ships s inside (-.5, +1e3, -0.50, 1000.) emit changes

{"v": 3, "stream": "ships", "inside": {"kind": "box", "minx": -0.5, "miny": 1000.0, "maxx": -0.5, "maxy": 1000.0}}

REGISTER QUERY "a point, 1" AS SELECT * FROM ships INSIDE (-0.5, 1000, -0.5, 1000)
