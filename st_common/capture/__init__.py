"""The log of a stream: numbered segments of records and control rows, written once, read by whoever wants to.

Who writes (`Log.append`), who reads (`reading`), what a purge leaves (`log_purging`), and files into a log (`files`).
What records say is `decode`'s affair, feeds that go on `feeds`'. Begin with `log`, then `segment`.
"""
