"""Lineage: which run of which job read and wrote which tables, told as OpenLineage has it (docs/operations.md).

Tables and jobs do not know of it: what they read and wrote is noted by `observed`. Begin with `run`.
"""
