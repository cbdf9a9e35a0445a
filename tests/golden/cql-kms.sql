-- CQL-S, section 3.2.2: the window of the meaning function, its units in the plural
REGISTER QUERY kms AS SELECT RStream(*) FROM Stream_car [RANGE BY '50 kms' RATTR SPACE, SLIDE BY '10 kms' SATTR SPACE]

{"v": 3, "stream": "Stream_car", "frame": {"sliding": [{"range": {"by": "space", "amount": 50000.0}, "slide": {"by": "space", "amount": 10000.0}}]}, "emit": "rstream"}

REGISTER QUERY kms AS SELECT RSTREAM(*) FROM Stream_car [RANGE BY 50000 m RATTR SPACE, SLIDE BY 10000 m SATTR SPACE]
