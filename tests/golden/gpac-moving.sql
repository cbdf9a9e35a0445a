-- GPAC, section 5: the moving rectangle ('M', ID, xdist, ydist), full sides
REGISTER QUERY around AS SELECT * FROM moving_objects GPAC-IN ('M', 'car7', 0.02, 0.01)

{"v": 3, "stream": "moving_objects", "inside": {"kind": "moving_box", "focal": "car7", "width": 0.02, "height": 0.01}}

REGISTER QUERY around AS SELECT * FROM moving_objects INSIDE ('M', 'car7', 0.02, 0.01)
