-- kinds of the layer beside a condition on the fix
REGISTER QUERY slow AS SELECT * FROM taxis t JOIN roads r ON ST_DWithin(t, r, 5 m)
WHERE (speed_mps < 3 OR t.state = 'free') AND r.kind IN ('motorway', 'trunk')

{"v": 3, "stream": "taxis", "join": {"layer": "roads", "predicate": "dwithin", "distance_m": 5.0, "kinds": ["motorway", "trunk"]}, "where": "speed_mps < 3 OR state = 'free'"}

REGISTER QUERY slow AS SELECT * FROM taxis JOIN roads ON ST_DWithin(taxis, roads, 5 m) WHERE roads.kind IN ('motorway', 'trunk') AND (speed_mps < 3 OR state = 'free')
