"""Rejected records that are good by the settings of now: into the log once more, each once (docs/adr/0088)."""
