"""Bytes of a segment to fixes and rejects, one format per file."""
