-- BBoxDB, section 1.2 (1) and figure 14: which aircraft is in the airspace over Berlin? The height is an attribute
REGISTER QUERY airspace AS
SELECT callsign FROM aircraft WHERE altitude_m BETWEEN 0 AND 13000 INSIDE (13.08, 52.33, 13.77, 52.68)

{"v": 3, "stream": "aircraft", "inside": {"kind": "box", "minx": 13.08, "miny": 52.33, "maxx": 13.77, "maxy": 52.68}, "where": "altitude_m BETWEEN 0 AND 13000", "columns": [["callsign", "callsign"]]}

REGISTER QUERY airspace AS SELECT callsign FROM aircraft WHERE altitude_m BETWEEN 0 AND 13000 INSIDE (13.08, 52.33, 13.77, 52.68)
