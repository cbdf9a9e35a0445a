-- CQL-S, section 2 (Q1), as printed: the average speed of a car in the past 60 minutes, every 10 minutes
REGISTER QUERY Q1 AS
SELECT RStream (AvgSpd(R))
FROM R=Stream_car [RANGE '60 minutes', SLIDE '10 minutes']
WHERE R.ID=mycar

{"v": 3, "stream": "Stream_car", "aggregate": {"function": "avgspd"}, "frame": {"sliding": [{"range": {"by": "time", "amount": 3600.0}, "slide": {"by": "time", "amount": 600.0}}]}, "where": "ID = mycar", "emit": "rstream"}

REGISTER QUERY Q1 AS SELECT RSTREAM(AVGSPD(*)) FROM Stream_car [RANGE BY 3600 s RATTR TIME, SLIDE BY 600 s SATTR TIME] WHERE ID = mycar
