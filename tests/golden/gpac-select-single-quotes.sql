-- GPAC, section 6.1.1, with the text in single quotes and the area in its place
REGISTER QUERY trucks AS
SELECT M.object
FROM moving_objects M
WHERE M.type = 'truck'
GPAC-IN (0.2, 0.8, 0.4, 0.6)

{"v": 3, "stream": "moving_objects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "where": "type = 'truck'", "columns": [["object", "object"]]}

REGISTER QUERY trucks AS SELECT object FROM moving_objects WHERE type = 'truck' INSIDE (0.2, 0.6, 0.4, 0.8)
