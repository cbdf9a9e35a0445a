-- GPAC, section 6.1.2, joined by ON, with the key of the features
REGISTER QUERY favourites AS
SELECT M.object
FROM moving_objects M JOIN my_favourite_cars F ON M.object = F.fid
GPAC-IN (0.2, 0.8, 0.4, 0.6)

{"v": 3, "stream": "moving_objects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "join": {"layer": "my_favourite_cars", "predicate": "equals", "left": "object", "right": "fid"}, "columns": [["object", "object"]]}

REGISTER QUERY favourites AS SELECT object FROM moving_objects JOIN my_favourite_cars ON object = my_favourite_cars.fid INSIDE (0.2, 0.6, 0.4, 0.8)
