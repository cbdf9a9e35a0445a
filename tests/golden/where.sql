-- a condition on the fix; what is written in several ways has one form
REGISTER QUERY fast AS SELECT * FROM taxis t
WHERE (t.speed_mps > 20 AND (lower(state) != 'free' or state is not null)) AND "order" not in (1, 2) AND size::int % 2 = 1

{"v": 3, "stream": "taxis", "where": "speed_mps > 20 AND (LOWER(state) <> 'free' OR NOT state IS NULL) AND NOT \"order\" IN (1, 2) AND CAST(size AS INT) % 2 = 1"}

REGISTER QUERY fast AS SELECT * FROM taxis WHERE speed_mps > 20 AND (LOWER(state) <> 'free' OR NOT state IS NULL) AND NOT "order" IN (1, 2) AND CAST(size AS INT) % 2 = 1
