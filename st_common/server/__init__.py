"""HTTP in and out: fixes, queries, answers, changes as they happen, features (SPEC S8)."""
