-- columns with and without a name
REGISTER QUERY shown AS SELECT t.state, round(speed_mps * 3.6, 1) AS "km/h", x + y FROM taxis t

{"v": 3, "stream": "taxis", "columns": [["state", "state"], ["km/h", "ROUND(speed_mps * 3.6, 1)"], ["x + y", "x + y"]]}

REGISTER QUERY shown AS SELECT state, ROUND(speed_mps * 3.6, 1) AS "km/h", x + y FROM taxis
