"""The read side of a home: answers, changes, objects, SQL, exports, metrics, the state of streams; no JVM.

Everything is read from tables, logs and status files; nothing is written but exports. Whether answers hold is `checks`'
affair. Begin with `answers`, then `stream_state`, then `sql`.
"""
