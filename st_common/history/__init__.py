"""History below an engine's memory (PLACE, SPEC P2): `latest`, `snapshots` and visits, made from tables alone.

Whoever makes them, and when, they are the same: the version of a commit is a place in the log. Questions about the past
are answered by `answers.history` and `batch.asking`; no query is evaluated here. Begin with `taking`, then `visits`.
"""
