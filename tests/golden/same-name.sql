-- a stream and a layer of one name, words of SQL as names
REGISTER QUERY "select" AS SELECT * FROM "table" a JOIN LAYER "table" b ON ST_Intersects(a, b)

{"v": 3, "stream": "table", "join": {"layer": "table", "predicate": "intersects"}}

REGISTER QUERY "select" AS SELECT * FROM "table" JOIN LAYER "table" features ON ST_Intersects("table", features)
