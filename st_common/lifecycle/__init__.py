"""How long everything that is stored lives: compaction, retention, and what was left behind (docs/operations.md)."""
