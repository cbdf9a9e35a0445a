-- a layer by an alias, its kinds sorted, each once
REGISTER QUERY green AS
  SELECT * FROM taxis AS t
  INNER JOIN parks p ON ST_Intersects(p, t)
  WHERE p.kind IN ('park', 'forest', 'park')

{"v": 3, "stream": "taxis", "join": {"layer": "parks", "predicate": "intersects", "kinds": ["forest", "park"]}}

REGISTER QUERY green AS SELECT * FROM taxis JOIN parks ON ST_Intersects(taxis, parks) WHERE parks.kind IN ('forest', 'park')
