"""Regions: all that is known of each in a module of its own, and the registry that others ask (docs/adr/0033)."""
