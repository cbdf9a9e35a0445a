-- no clause: every object of the stream
REGISTER QUERY everybody AS SELECT * FROM taxis EMIT EVERY

{"v": 3, "stream": "taxis", "emit": "every"}

REGISTER QUERY everybody AS SELECT * FROM taxis EMIT EVERY
