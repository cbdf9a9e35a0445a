"""Aggregates and distinct values above spatial answers and windows."""
