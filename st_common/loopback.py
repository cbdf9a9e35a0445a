"""Names of this machine that no other machine has."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""As hosts of addresses, without brackets."""
