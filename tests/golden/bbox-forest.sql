-- BBoxDB, section 5.5.4: which buses are driving through a forest in Sydney? The strict test is the join itself
REGISTER QUERY forest AS
SELECT *
FROM dgroup_bus b JOIN dgroup_forest f ON ST_Intersects(b, f)
INSIDE (150.5, -34.2, 151.4, -33.5)

{"v": 3, "stream": "dgroup_bus", "inside": {"kind": "box", "minx": 150.5, "miny": -34.2, "maxx": 151.4, "maxy": -33.5}, "join": {"layer": "dgroup_forest", "predicate": "intersects"}}

REGISTER QUERY forest AS SELECT * FROM dgroup_bus JOIN dgroup_forest ON ST_Intersects(dgroup_bus, dgroup_forest) INSIDE (150.5, -34.2, 151.4, -33.5)
