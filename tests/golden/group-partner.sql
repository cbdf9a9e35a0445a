-- how many taxis are in each park
REGISTER QUERY crowded AS
SELECT p.fid, COUNT(*) FROM taxis t JOIN parks p ON ST_Intersects(t, p) GROUP BY p.fid

{"v": 3, "stream": "taxis", "join": {"layer": "parks", "predicate": "intersects"}, "aggregate": {"function": "count", "group": "partner"}}

REGISTER QUERY crowded AS SELECT COUNT(*) FROM taxis JOIN parks ON ST_Intersects(taxis, parks) GROUP BY parks.fid
