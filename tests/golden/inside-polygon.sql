-- an area as WKT, its rings in one order
REGISTER QUERY triangle AS SELECT * FROM ships INSIDE 'polygon((0 0, 10.5 0, 0 10, 0 0), (1 1, 1 2, 2 1, 1 1))'

{"v": 3, "stream": "ships", "inside": {"kind": "area", "wkt": "POLYGON ((0 0, 0 10, 10.5 0, 0 0), (1 1, 2 1, 1 2, 1 1))"}}

REGISTER QUERY triangle AS SELECT * FROM ships INSIDE 'POLYGON ((0 0, 0 10, 10.5 0, 0 0), (1 1, 2 1, 1 2, 1 1))'
