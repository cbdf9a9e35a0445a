"""Fixes that are filtered before any operator sees them."""
