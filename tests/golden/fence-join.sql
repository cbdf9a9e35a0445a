-- events at the features of a layer
REGISTER QUERY parks AS
SELECT * FROM taxis JOIN parks ON ST_DWithin(taxis, parks, 20 m)
WHERE state = 'free' AND parks.kind = 'park' DETECT enter, exit, inside, dwell 1 hour

{"v": 3, "stream": "taxis", "join": {"layer": "parks", "predicate": "dwithin", "distance_m": 20.0, "kinds": ["park"]}, "fence": {"events": ["enter", "exit", "inside", "dwell"], "dwell_s": 3600.0}, "where": "state = 'free'"}

REGISTER QUERY parks AS SELECT * FROM taxis JOIN parks ON ST_DWithin(taxis, parks, 20 m) WHERE parks.kind = 'park' AND state = 'free' DETECT ENTER, EXIT, INSIDE, DWELL 3600 s
