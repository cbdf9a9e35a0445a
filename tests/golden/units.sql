-- units in conditions: metres, seconds, metres per second
REGISTER QUERY units AS
SELECT * FROM buses WHERE speed_mps > 50 km/h AND speed_mps <= 30 kn AND elapsed_s BETWEEN 5 min AND 1 hour AND speed_mps <> 36 KMH

{"v": 3, "stream": "buses", "where": "speed_mps > 13.88888888888889 AND speed_mps <= 15.433333333333334 AND elapsed_s BETWEEN 300 AND 3600 AND speed_mps <> 10"}

REGISTER QUERY units AS SELECT * FROM buses WHERE speed_mps > 13.88888888888889 AND speed_mps <= 15.433333333333334 AND elapsed_s BETWEEN 300 AND 3600 AND speed_mps <> 10
