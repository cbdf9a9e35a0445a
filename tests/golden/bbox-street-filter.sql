-- BBoxDB, section 5.5.5, with the filter and its custom value as the paper writes them
REGISTER QUERY elizabeth AS
SELECT *
FROM dgroup_bus b JOIN dgroup_road r ON ST_DWithin(b, r, 5 m)
INSIDE (150.5, -34.2, 151.4, -33.5)
USING filter('geojson', 'name:Elizabeth Street')

{"v": 3, "stream": "dgroup_bus", "inside": {"kind": "box", "minx": 150.5, "miny": -34.2, "maxx": 151.4, "maxy": -33.5}, "join": {"layer": "dgroup_road", "predicate": "dwithin", "distance_m": 5.0}, "transforms": [{"kind": "filter", "text": "name:Elizabeth Street", "name": "geojson"}]}

REGISTER QUERY elizabeth AS SELECT * FROM dgroup_bus JOIN dgroup_road ON ST_DWithin(dgroup_bus, dgroup_road, 5 m) INSIDE (150.5, -34.2, 151.4, -33.5) USING filter('geojson', 'name:Elizabeth Street')
