-- GPAC, section 5: the moving kNN query ('M', k, ID)
REGISTER QUERY neighbours AS SELECT * FROM moving_objects GPAC - kNN ('M', 3, 'car7')

{"v": 3, "stream": "moving_objects", "neighbours": {"kind": "nearest", "k": 3, "place": {"focal": "car7"}}}

REGISTER QUERY neighbours AS SELECT * FROM moving_objects KNN ('M', 3, 'car7')
