-- until when each member stays inside, from its velocity
REGISTER QUERY leaving AS SELECT * FROM ships INSIDE (9.8, 57.1, 10.2, 57.9) EMIT EVERY WITH VALID UNTIL

{"v": 3, "stream": "ships", "inside": {"kind": "box", "minx": 9.8, "miny": 57.1, "maxx": 10.2, "maxy": 57.9}, "valid_until": true, "emit": "every"}

REGISTER QUERY leaving AS SELECT * FROM ships INSIDE (9.8, 57.1, 10.2, 57.9) EMIT EVERY WITH VALID UNTIL
