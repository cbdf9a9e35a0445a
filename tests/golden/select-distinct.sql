-- the distinct values among members
REGISTER QUERY states AS SELECT DISTINCT UPPER(state) FROM taxis INSIDE (-8.7, 41.1, -8.5, 41.2)

{"v": 3, "stream": "taxis", "inside": {"kind": "box", "minx": -8.7, "miny": 41.1, "maxx": -8.5, "maxy": 41.2}, "aggregate": {"function": "distinct", "group": "UPPER(state)"}}

REGISTER QUERY states AS SELECT DISTINCT UPPER(state) FROM taxis INSIDE (-8.7, 41.1, -8.5, 41.2)
