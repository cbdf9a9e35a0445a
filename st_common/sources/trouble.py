"""Why a connection does not come about, in words."""

import os
import socket


def said(error: Exception) -> str:
    """What is wrong, for people: `connection refused` and not `[Errno 111] Connect call failed ('127.0.0.1', 5055)`."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
