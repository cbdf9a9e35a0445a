"""How long everything that is stored lives: compaction, retention, backups, and what was left behind.

It decides what is due and asks `tables` to do it; nobody else deletes. docs/operations.md says what is kept for how
long. Begin with `maintain`, then `retention`.
"""
