-- a full range before anything is told, a least step against jitter, and where slides are counted from
REGISTER QUERY odometer AS
SELECT COUNT(*) FROM taxis [RANGE BY 5 mi RATTR SPACE] t
WITH (windows = 'full', min_step = '10 m', origin = '2026-01-01T00:00:00+01:00', plan = 'space_first')

{"v": 3, "stream": "taxis", "aggregate": {"function": "count"}, "frame": {"sliding": [{"range": {"by": "space", "amount": 8046.72}}], "full": true, "min_step_m": 10.0, "origin_s": 1767222000.0}, "order": "space_first"}

REGISTER QUERY odometer AS SELECT COUNT(*) FROM taxis [RANGE BY 8046.72 m RATTR SPACE] WITH (plan = 'space_first', windows = 'full', min_step = '10 m', origin = '2025-12-31T23:00:00Z')
