-- a key: a value of the fix against a tag of the feature
REGISTER QUERY served AS
SELECT * FROM taxis t JOIN stops s ON s."line:ref" = t.line || '-' || t.direction WHERE s.kind = 'stop'

{"v": 3, "stream": "taxis", "join": {"layer": "stops", "predicate": "equals", "kinds": ["stop"], "left": "line || '-' || direction", "right": "line:ref"}}

REGISTER QUERY served AS SELECT * FROM taxis JOIN stops ON (line || '-' || direction) = stops."line:ref" WHERE stops.kind = 'stop'
