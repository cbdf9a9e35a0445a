"""The spatial answers at several ticks of a run at once, as far as that is less work."""
