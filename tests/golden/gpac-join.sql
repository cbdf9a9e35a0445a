-- GPAC, section 6.1.2, as printed: my favourite cars within MyArea; the favourites are a stored table
CREATE AREA MyArea AS (0.2, 0.8, 0.4, 0.6);
REGISTER QUERY favourites AS
SELECT M.ObjectID
FROM MovingObjects M, MyFavoriteCars F
WHERE M.ObjectID = F.ObjectID
GPAC-IN MyArea

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "box", "minx": 0.2, "miny": 0.6, "maxx": 0.4, "maxy": 0.8}, "join": {"layer": "MyFavoriteCars", "predicate": "equals", "left": "ObjectID", "right": "ObjectID"}, "columns": [["ObjectID", "ObjectID"]]}

REGISTER QUERY favourites AS SELECT ObjectID FROM MovingObjects JOIN MyFavoriteCars ON ObjectID = MyFavoriteCars.ObjectID INSIDE (0.2, 0.6, 0.4, 0.8)
