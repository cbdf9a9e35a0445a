-- a range of metres that moves on by every tenth fix
REGISTER QUERY tenth AS SELECT * FROM taxis [RANGE BY 1 km RATTR SPACE, SLIDE BY 10 SATTR ROWS]

{"v": 3, "stream": "taxis", "frame": {"sliding": [{"range": {"by": "space", "amount": 1000.0}, "slide": {"by": "rows", "amount": 10.0}}]}}

REGISTER QUERY tenth AS SELECT * FROM taxis [RANGE BY 1000 m RATTR SPACE, SLIDE BY 10 SATTR ROWS]
