"""Where servers of this machine are that no other machine reaches: its names, and the port of Fairway's own."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""As hosts of addresses, without brackets."""
SERVE_PORT = 8640
"""Where `fairway serve` listens, unless it is told another one."""
