-- a moving circle: one length is its radius
REGISTER QUERY fence AS SELECT * FROM ships INSIDE ('M', 'tug''s 2', 1 nmi)

{"v": 3, "stream": "ships", "inside": {"kind": "moving_circle", "focal": "tug's 2", "radius_m": 1852.0}}

REGISTER QUERY fence AS SELECT * FROM ships INSIDE ('M', 'tug''s 2', 1852 m)
