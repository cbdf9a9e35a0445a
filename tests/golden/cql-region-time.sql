-- a trajectory in a region, bounded by a time; the region of a window is any that stands still
REGISTER QUERY trail AS
SELECT ISTREAM(x, y, event_ts) FROM ships [RANGE BY CIRCLE (10, 55, 5 nmi) RATTR SPACE] [RANGE 2 hours]

{"v": 3, "stream": "ships", "frame": {"sliding": [{"range": {"by": "time", "amount": 7200.0}}], "regions": [{"kind": "circle", "x": 10.0, "y": 55.0, "radius_m": 9260.0}]}, "columns": [["x", "x"], ["y", "y"], ["event_ts", "event_ts"]], "emit": "istream"}

REGISTER QUERY trail AS SELECT ISTREAM(x, y, event_ts) FROM ships [RANGE BY 7200 s RATTR TIME] [RANGE BY CIRCLE (10, 55, 9260 m) RATTR SPACE]
