"""Control rows: what stands in a log beside records. Their kinds, the one writer of them, and the one reader.

The reader knows all rows of a segment before it gives those of one kind: what it does not know (an op, a field, a
version of a plan) is an error, for whoever reads. To look for a word in the bytes first was quicker, and passed unknown
rows over.

What a plan in such a row means is `query`'s affair; where rows lie, `log`'s. Begin with `rows`, then `reading`.
"""
