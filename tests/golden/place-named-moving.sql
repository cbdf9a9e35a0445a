-- PLACE: a named area that goes with an object
CREATE AREA "around me" AS ('M', 'car7', 500 m);
REGISTER QUERY nearby AS SELECT * FROM moving_objects INSIDE "Around Me"

{"v": 3, "stream": "moving_objects", "inside": {"kind": "moving_circle", "focal": "car7", "radius_m": 500.0}}

REGISTER QUERY nearby AS SELECT * FROM moving_objects INSIDE ('M', 'car7', 500 m)
