-- buses of one line that are within a kilometre of each other
REGISTER QUERY bunching AS
SELECT * FROM buses a JOIN buses b ON ST_DWithin(a, b, 1 km) AND b.line = a.line WHERE a.speed_mps > 1

{"v": 3, "stream": "buses", "pairs": {"distance_m": 1000.0, "keys": ["line"]}, "where": "speed_mps > 1"}

REGISTER QUERY bunching AS SELECT * FROM buses JOIN buses other ON ST_DWithin(buses, other, 1000 m) AND buses.line = other.line WHERE speed_mps > 1
