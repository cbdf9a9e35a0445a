"""Shipped test kit: movers, strategies, laws, brute-force oracle."""
