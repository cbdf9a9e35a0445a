-- BBoxDB, section 5.5.2: do two vehicles drive side by side, closer to each other than 10 m?
REGISTER QUERY side_by_side AS
SELECT *
FROM dgroup_car
WHERE object = 'vehicle1'
INSIDE ('M', 'vehicle2', 10 m)

{"v": 3, "stream": "dgroup_car", "inside": {"kind": "moving_circle", "focal": "vehicle2", "radius_m": 10.0}, "where": "object = 'vehicle1'"}

REGISTER QUERY side_by_side AS SELECT * FROM dgroup_car WHERE object = 'vehicle1' INSIDE ('M', 'vehicle2', 10 m)
