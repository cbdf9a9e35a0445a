-- CQL-S, section 3.2.1 (Q2), as printed: the trajectory of an object in the east China sea
CREATE AREA East_China_Sea AS 'POLYGON ((121 25, 129 25, 127 33, 121 31, 121 25))';
REGISTER QUERY Q2 AS
SELECT RStream(Stamps(*))
FROM Moving_Objects_Stream
[RANGE BY East_China_Sea RATTR SPACE]
WHERE ID='o1'

{"v": 3, "stream": "Moving_Objects_Stream", "frame": {"regions": [{"kind": "area", "wkt": "POLYGON ((121 25, 121 31, 127 33, 129 25, 121 25))"}]}, "where": "ID = 'o1'", "columns": [["x", "x"], ["y", "y"], ["event_ts", "event_ts"]], "emit": "rstream"}

REGISTER QUERY Q2 AS SELECT RSTREAM(x, y, event_ts) FROM Moving_Objects_Stream [RANGE BY 'POLYGON ((121 25, 121 31, 127 33, 129 25, 121 25))' RATTR SPACE] WHERE ID = 'o1'
