-- the two taxis with the least sum of distances to a place and to two people
REGISTER QUERY meet AS SELECT * FROM taxis GROUP KNN (2, sum, (-8.61, 41.15), ('M', 'ann'), ('M', 'bob'))

{"v": 3, "stream": "taxis", "neighbours": {"kind": "group", "k": 2, "total": "sum", "places": [{"x": -8.61, "y": 41.15}, {"focal": "ann"}, {"focal": "bob"}]}}

REGISTER QUERY meet AS SELECT * FROM taxis GROUP KNN (2, SUM, (-8.61, 41.15), ('M', 'ann'), ('M', 'bob'))
