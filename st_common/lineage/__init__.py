"""Lineage: which run of which job read and wrote which tables, told as OpenLineage has it (docs/operations.md)."""
