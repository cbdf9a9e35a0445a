"""From rows of the log to events in the order in which they take effect, and to the ticks that are due."""
