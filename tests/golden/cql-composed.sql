-- windows below a join, a region and a group: the speed over the last 5 km of buses that are inside a park now
REGISTER QUERY composed AS
SELECT line, AVG(speed_mps)
FROM buses [RANGE BY 5 km RATTR SPACE] b JOIN parks p ON ST_Intersects(b, p)
INSIDE (-8.7, 41.1, -8.5, 41.2)
GROUP BY line

{"v": 3, "stream": "buses", "inside": {"kind": "box", "minx": -8.7, "miny": 41.1, "maxx": -8.5, "maxy": 41.2}, "join": {"layer": "parks", "predicate": "intersects"}, "aggregate": {"function": "avg", "argument": "speed_mps", "group": "line"}, "frame": {"sliding": [{"range": {"by": "space", "amount": 5000.0}}]}}

REGISTER QUERY composed AS SELECT AVG(speed_mps) FROM buses [RANGE BY 5000 m RATTR SPACE] JOIN parks ON ST_Intersects(buses, parks) INSIDE (-8.7, 41.1, -8.5, 41.2) GROUP BY line
