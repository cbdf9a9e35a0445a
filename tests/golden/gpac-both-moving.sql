-- GPAC, section 5: the whole form, both moving with the focal point car7
REGISTER QUERY whole AS
SELECT *
FROM MovingObjects
WHERE type = 'truck'
GPAC-IN ('M', 'car7', 0.02, 0.01)
GPAC-kNN ('M', 3, 'car7')

{"v": 3, "stream": "MovingObjects", "inside": {"kind": "moving_box", "focal": "car7", "width": 0.02, "height": 0.01}, "neighbours": {"kind": "nearest", "k": 3, "place": {"focal": "car7"}}, "where": "type = 'truck'"}

REGISTER QUERY whole AS SELECT * FROM MovingObjects WHERE type = 'truck' INSIDE ('M', 'car7', 0.02, 0.01) KNN ('M', 3, 'car7')
