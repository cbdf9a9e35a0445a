-- BBoxDB, section 1.2 (3): has a convoy broken apart? What leaves the region around its leader is told
REGISTER QUERY convoy AS
SELECT DSTREAM(*) FROM trucks WHERE convoy = 'A' INSIDE ('M', 'leader', 300 m)

{"v": 3, "stream": "trucks", "inside": {"kind": "moving_circle", "focal": "leader", "radius_m": 300.0}, "where": "convoy = 'A'", "emit": "dstream"}

REGISTER QUERY convoy AS SELECT DSTREAM(*) FROM trucks WHERE convoy = 'A' INSIDE ('M', 'leader', 300 m)
