-- CQL-S, section 3.2: range and slide of different domains, and several windows, of which a fix is in all
REGISTER QUERY mixed AS
SELECT AVGSPD(*), object
FROM buses [RANGE BY 50 km RATTR SPACE, SLIDE BY 10 min SATTR TIME]
  [range by 1 hour rattr time, slide by 5 km sattr space] [ROWS 100, SLIDE 10] AS b
WHERE line = 'A'

{"v": 3, "stream": "buses", "aggregate": {"function": "avgspd"}, "frame": {"sliding": [{"range": {"by": "space", "amount": 50000.0}, "slide": {"by": "time", "amount": 600.0}}, {"range": {"by": "time", "amount": 3600.0}, "slide": {"by": "space", "amount": 5000.0}}, {"range": {"by": "rows", "amount": 100.0}, "slide": {"by": "rows", "amount": 10.0}}]}, "where": "line = 'A'"}

REGISTER QUERY mixed AS SELECT AVGSPD(*) FROM buses [RANGE BY 50000 m RATTR SPACE, SLIDE BY 600 s SATTR TIME] [RANGE BY 3600 s RATTR TIME, SLIDE BY 5000 m SATTR SPACE] [ROWS 100, SLIDE 10] WHERE line = 'A'
