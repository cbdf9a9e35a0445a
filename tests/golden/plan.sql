-- the order of selection and region, chosen by hand
REGISTER QUERY chosen AS SELECT * FROM taxis INSIDE (-8.7, 41.1, -8.5, 41.2) WHERE state = 'free' WITH (plan = 'select_first')

{"v": 3, "stream": "taxis", "inside": {"kind": "box", "minx": -8.7, "miny": 41.1, "maxx": -8.5, "maxy": 41.2}, "where": "state = 'free'", "order": "select_first"}

REGISTER QUERY chosen AS SELECT * FROM taxis WHERE state = 'free' INSIDE (-8.7, 41.1, -8.5, 41.2) WITH (plan = 'select_first')
