"""Continuous queries as pure steps over arrays."""
