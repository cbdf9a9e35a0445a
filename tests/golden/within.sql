-- within a feature, not on its border; tags and kinds after ON
REGISTER QUERY within AS
SELECT * FROM taxis t JOIN parks p ON ST_Contains(p, t) AND p."kinds" = 'x' AND p.name = 'it''s' AND p.kind = 'park' AND t.state = 'free'
WHERE NOT speed_mps > 10 OR x > 0

{"v": 3, "stream": "taxis", "join": {"layer": "parks", "predicate": "within", "kinds": ["park"], "tags": [["kinds", "x"], ["name", "it's"]]}, "where": "state = 'free' AND (NOT speed_mps > 10 OR x > 0)"}

REGISTER QUERY within AS SELECT * FROM taxis JOIN parks ON ST_Within(taxis, parks) AND parks."kinds" = 'x' AND parks.name = 'it''s' WHERE parks.kind = 'park' AND state = 'free' AND (NOT speed_mps > 10 OR x > 0)
