-- AND, OR and NOT of regions; several INSIDE are one region
REGISTER QUERY yard AS SELECT * FROM trucks NOT INSIDE circle(5, 5, 2 m) AND INSIDE ((0, 0, 10, 10) or not 'polygon((0 0, 4 0, 0 4, 0 0))')

{"v": 3, "stream": "trucks", "inside": {"kind": "intersection", "parts": [{"kind": "complement", "part": {"kind": "circle", "x": 5.0, "y": 5.0, "radius_m": 2.0}}, {"kind": "union", "parts": [{"kind": "box", "minx": 0.0, "miny": 0.0, "maxx": 10.0, "maxy": 10.0}, {"kind": "complement", "part": {"kind": "area", "wkt": "POLYGON ((0 0, 0 4, 4 0, 0 0))"}}]}]}}

REGISTER QUERY yard AS SELECT * FROM trucks INSIDE (NOT CIRCLE (5, 5, 2 m) AND ((0, 0, 10, 10) OR NOT 'POLYGON ((0 0, 0 4, 4 0, 0 0))'))
