-- no clause: every object of the stream
REGISTER QUERY everybody AS SELECT * FROM taxis EMIT EVERY

{"v": 1, "stream": "taxis", "inside": null, "join": null, "emit": "every"}

REGISTER QUERY everybody AS SELECT * FROM taxis EMIT EVERY
