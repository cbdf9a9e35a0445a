"""Fences: who enters, exits, crosses and dwells, with hysteresis."""
