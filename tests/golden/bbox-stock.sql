-- BBoxDB, section 5.5.1: is the price of the stock "Apple" above 100? One dimension: y is 0
REGISTER QUERY apple AS
SELECT *
FROM dgroup_stock
INSIDE (100, 0, 9999, 0)
USING key('Apple')
COMPARE WITH (100, 0, 9999, 0)
EMIT EVERY

{"v": 3, "stream": "dgroup_stock", "inside": {"kind": "box", "minx": 100.0, "miny": 0.0, "maxx": 9999.0, "maxy": 0.0}, "transforms": [{"kind": "key", "text": "Apple"}], "compare": {"box": {"minx": 100.0, "miny": 0.0, "maxx": 9999.0, "maxy": 0.0}}, "emit": "every"}

REGISTER QUERY apple AS SELECT * FROM dgroup_stock INSIDE (100, 0, 9999, 0) COMPARE WITH (100, 0, 9999, 0) USING key('Apple') EMIT EVERY
