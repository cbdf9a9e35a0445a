-- CQL-S, section 3.2.2 (Q3), as printed: the average speed in the last 50 km, each time it moves 10 km
REGISTER QUERY Q3 AS
SELECT RStream (mycar,AvgSpd(R))
FROM R=Stream_mycar
[RANGE BY '50 km' RATTR SPACE, SLIDE BY '10 km' SATTR SPACE]

{"v": 3, "stream": "Stream_mycar", "aggregate": {"function": "avgspd"}, "frame": {"sliding": [{"range": {"by": "space", "amount": 50000.0}, "slide": {"by": "space", "amount": 10000.0}}]}, "emit": "rstream"}

REGISTER QUERY Q3 AS SELECT RSTREAM(AVGSPD(*)) FROM Stream_mycar [RANGE BY 50000 m RATTR SPACE, SLIDE BY 10000 m SATTR SPACE]
