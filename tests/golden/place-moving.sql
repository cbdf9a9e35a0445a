-- PLACE, section 3.2: INSIDE and kNN with the flag M and the focal object
REGISTER QUERY query_name AS
SELECT ObjectID
FROM MovingObjects
INSIDE ('M', 'car7', 0.02, 0.01)
kNN ('M', 2, 'car7')

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "moving_box", "focal": "car7", "width": 0.02, "height": 0.01}, "neighbours": {"kind": "nearest", "k": 2, "place": {"focal": "car7"}}, "columns": [["ObjectID", "ObjectID"]]}

REGISTER QUERY query_name AS SELECT ObjectID FROM MovingObjects INSIDE ('M', 'car7', 0.02, 0.01) KNN ('M', 2, 'car7')
