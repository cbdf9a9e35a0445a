"""Queries that nobody named: a program registers them for itself, and they come and go with it."""

import re
import uuid

_PASSING = re.compile(r"client_[0-9a-f]{12}")


def passing_name() -> str:
    """A new name for such a query: `client_` and twelve hexadecimal digits."""
    return f"client_{uuid.uuid4().hex[:12]}"


def is_passing(name: str) -> bool:
    """Whether a query of that name is one."""
    return _PASSING.fullmatch(name) is not None
