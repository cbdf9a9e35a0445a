-- PLACE, section 4.3: the elapsed time between each two consecutive readings of each moving object
REGISTER QUERY elapsed AS SELECT elapsed_s FROM moving_objects EMIT EVERY

{"v": 3, "stream": "moving_objects", "columns": [["elapsed_s", "elapsed_s"]], "emit": "every"}

REGISTER QUERY elapsed AS SELECT elapsed_s FROM moving_objects EMIT EVERY
