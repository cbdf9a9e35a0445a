"""From a network, a pipe or a folder into a stream's log, as it happens (SPEC B6)."""
