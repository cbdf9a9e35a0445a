"""The log of a stream: numbered segments of records and control rows, written once, read by whoever wants to.

Who writes (`Log.append`, and `appending` where fixes far ahead are marked on their way), who reads (`reader`, by
`record_settings`), what a purge leaves (`log_purging`). What records say is `decode`'s affair; they come from files by
`replay`, from feeds by `sources`. Begin with `log`, then `segment`.
"""
