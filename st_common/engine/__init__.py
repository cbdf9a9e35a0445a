"""The run of a stream on one machine: it folds the steps of `operators` over a log, and commits what they emit.

Leases, states on disk, the archive, reshards and recovery are here, batch runs over past days in `batch`. What a query
means is not: that is `operators` and `query`. Begin with `run`, then `local`, then `committing`.
"""
