"""What tests share, and the library does not ship: movers, strategies, laws, brute-force oracle."""
