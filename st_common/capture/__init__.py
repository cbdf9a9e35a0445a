"""Bytes from outside into a stream's log."""
