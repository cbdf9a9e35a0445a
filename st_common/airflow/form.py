"""What a form has, and what is given that it does not have. The standard library only."""

from collections.abc import Collection
from typing import Any


def unknown_values(given: Any, known: Collection[str]) -> list[str]:
    """The names of values that a form does not have, in order.

        {"regions": 8, "regionen": 9}, known {"group", "regions"}   ->   ["regionen"]

    Args:
        given: the values of a run by name; None or {}: none.
        known: the names in the form.
    """
    return sorted(set(given or {}) - set(known))


def refusal(dag: str, unknown: Collection[str], known: Collection[str]) -> str:
    """What is said of values that a form does not have."""
    names = ", ".join(map(repr, unknown))
    has = ", ".join(sorted(known)) or "none"
    return f"DAG {dag} has no parameter {names} (it has: {has})"
