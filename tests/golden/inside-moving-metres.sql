-- a moving rectangle with sides in metres; the papers' flag M without quotes, an id that is a number
REGISTER QUERY near_7 AS SELECT * FROM ships INSIDE (m, 7, 2 km, 500 m)

{"v": 3, "stream": "ships", "inside": {"kind": "moving_box", "focal": "7", "width": 2000.0, "height": 500.0, "metres": true}}

REGISTER QUERY near_7 AS SELECT * FROM ships INSIDE ('M', '7', 2000 m, 500 m)
