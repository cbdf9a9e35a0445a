-- a stream and a layer of one name, words of SQL as names
REGISTER QUERY "select" AS SELECT * FROM "table" a JOIN "table" b ON ST_Intersects(a, b)

{"v": 1, "stream": "table", "inside": null, "join": {"layer": "table", "predicate": "intersects", "distance_m": 0.0, "kinds": []}, "emit": "changes"}

REGISTER QUERY "select" AS SELECT * FROM "table" JOIN "table" layer ON ST_Intersects("table", layer)
