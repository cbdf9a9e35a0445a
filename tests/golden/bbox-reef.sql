-- BBoxDB, section 1.2, figure 2, and section 4.4.2: ships that come close to a reef; the box of a ship is enlarged
REGISTER QUERY reef AS
SELECT *
FROM ships s JOIN reefs r ON ST_Intersects(s, r)
INSIDE (7, 53, 15, 58)
USING enlarge(1 km)

{"v": 3, "stream": "ships", "inside": {"kind": "box", "minx": 7.0, "miny": 53.0, "maxx": 15.0, "maxy": 58.0}, "join": {"layer": "reefs", "predicate": "intersects"}, "transforms": [{"kind": "metres", "amount": 1000.0}]}

REGISTER QUERY reef AS SELECT * FROM ships JOIN reefs ON ST_Intersects(ships, reefs) INSIDE (7, 53, 15, 58) USING enlarge(1000 m)
