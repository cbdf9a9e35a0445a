"""The run of a stream on one machine: it folds the steps of `operators` over a log, and commits what they emit.

States on disk, the journal, the archive (a thread beside the engine), reshards and recovery are here; who owns a stream
is said by its lease (`operations`), past days are `batch`'s. What a query means is not known here: that is `operators`
and `query`. Begin with `run`, then `local`, then `committing`.
"""
