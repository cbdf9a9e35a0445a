-- a circle by centre and radius, in kilometres; without a unit they are metres
REGISTER QUERY around AS SELECT * FROM ships INSIDE CIRCLE (9.8, 57.1, 1.5 km)

{"v": 3, "stream": "ships", "inside": {"kind": "circle", "x": 9.8, "y": 57.1, "radius_m": 1500.0}}

REGISTER QUERY around AS SELECT * FROM ships INSIDE CIRCLE (9.8, 57.1, 1500 m)
