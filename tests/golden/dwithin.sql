-- a distance in nautical miles, a quote in a kind, names with a hyphen; clauses in another order
REGISTER QUERY reef AS SELECT * FROM "ships-dk" JOIN "reefs-2020" ON st_dwithin("ships-dk", "reefs-2020", 2nmi)
INSIDE (9, 57, 10, 58) EMIT EVERY WHERE ('skipper''s rock' = "reefs-2020".kind)

{"v": 3, "stream": "ships-dk", "inside": {"kind": "box", "minx": 9.0, "miny": 57.0, "maxx": 10.0, "maxy": 58.0}, "join": {"layer": "reefs-2020", "predicate": "dwithin", "distance_m": 3704.0, "kinds": ["skipper's rock"]}, "emit": "every"}

REGISTER QUERY reef AS SELECT * FROM "ships-dk" JOIN "reefs-2020" ON ST_DWithin("ships-dk", "reefs-2020", 3704 m) WHERE "reefs-2020".kind = 'skipper''s rock' INSIDE (9, 57, 10, 58) EMIT EVERY
