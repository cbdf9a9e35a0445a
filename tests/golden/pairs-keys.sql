-- pairs by keys alone; one of them is computed
REGISTER QUERY same_fleet AS
SELECT COUNT(*) FROM buses a JOIN buses b ON a.fleet = b.fleet AND (a.speed_mps > 5) = (b.speed_mps > 5)

{"v": 3, "stream": "buses", "pairs": {"keys": ["fleet", "speed_mps > 5"]}, "aggregate": {"function": "count"}}

REGISTER QUERY same_fleet AS SELECT COUNT(*) FROM buses JOIN buses other ON buses.fleet = other.fleet AND (buses.speed_mps > 5) = (other.speed_mps > 5)
