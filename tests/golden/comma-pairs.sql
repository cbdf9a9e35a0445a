-- a comma joins a stream with itself as well; the conditions of WHERE about both join
REGISTER QUERY bunching AS
SELECT * FROM buses a, buses b WHERE a.speed_mps > 1 AND ST_DWithin(a, b, 0.5 mi) AND a.line = b.line

{"v": 3, "stream": "buses", "pairs": {"distance_m": 804.672, "keys": ["line"]}, "where": "speed_mps > 1"}

REGISTER QUERY bunching AS SELECT * FROM buses JOIN buses other ON ST_DWithin(buses, other, 804.672 m) AND buses.line = other.line WHERE speed_mps > 1
