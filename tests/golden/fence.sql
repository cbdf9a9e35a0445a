-- events at a border: jitter near it is no crossing
REGISTER QUERY depot AS
SELECT driver FROM trucks
DETECT DWELL 5 min, EXIT, ENTER
INSIDE CIRCLE (-8.61, 41.145, 0.5 km)
WITH (enter_after = 2 fixes, exit_after = 10 s 3 fixes, hysteresis = '100 ft', max_gap = 1 min)

{"v": 3, "stream": "trucks", "inside": {"kind": "circle", "x": -8.61, "y": 41.145, "radius_m": 500.0}, "fence": {"events": ["enter", "exit", "dwell"], "dwell_s": 300.0, "enter_after": {"fixes": 2}, "exit_after": {"fixes": 3, "seconds": 10.0}, "hysteresis_m": 30.48, "max_gap_s": 60.0}, "columns": [["driver", "driver"]]}

REGISTER QUERY depot AS SELECT driver FROM trucks INSIDE CIRCLE (-8.61, 41.145, 500 m) DETECT ENTER, EXIT, DWELL 300 s WITH (enter_after = 2 fixes, exit_after = 3 fixes 10 s, hysteresis = 30.48 m, max_gap = 60 s)
