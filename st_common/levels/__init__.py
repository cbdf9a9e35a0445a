"""The levels of storage below an engine's memory (PLACE, SPEC P2): `latest` and `snapshots`, made from tables alone."""
