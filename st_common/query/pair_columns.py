"""What the columns of a pair are called in the expressions of plans, beside those of its first object.

written                             in the plan
a.speed_mps, or speed_mps           speed_mps
b.speed_mps                         "other.speed_mps"
distance(a, b)                      "pair.distance_m"
bearing(a, b)                       "pair.bearing_deg"
"""

from collections.abc import Iterable, Iterator
from types import MappingProxyType

OTHER = "other."
"""Stands before the name of a column of the other object."""
_PAIR = "pair."
DISTANCE, BEARING = f"{_PAIR}distance_m", f"{_PAIR}bearing_deg"
MEASURES = MappingProxyType({"DISTANCE": DISTANCE, "BEARING": BEARING})
"""What is measured between the two, by the function that says it."""


def of_other(name: str) -> str:
    """What a column of the other object is called."""
    return f"{OTHER}{name}"


def is_of_pair(name: str) -> bool:
    """Whether a column is not one of the first object alone, by its name in any case."""
    return name.casefold().startswith((OTHER, _PAIR))


def own_name(name: str) -> str | None:
    """What the other object calls a column itself; None where it is not a column of the other."""
    return name[len(OTHER) :] if name.casefold().startswith(OTHER) else None


def plain_name(name: str) -> str:
    """What a column of a change is called that shows a column: without whose it is, as in SQL.

    Example:
        state, other.state and pair.distance_m      state, state and distance
    """
    functions = {column: function.lower() for function, column in MEASURES.items()}
    return functions.get(name) or own_name(name) or name


def of_pair(own: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The columns that a pair has beside those of its first object, with their types.

    Args:
        own: names and types in DuckDB of the columns of one object.
    """
    yield from ((of_other(name), kind) for name, kind in own)
    yield from ((name, "DOUBLE") for name in MEASURES.values())


def names_pair(text: str) -> bool:
    """Whether an expression may name a column of a pair: whether such a name begins anywhere in it."""
    said = text.casefold()
    return f'"{OTHER}' in said or f'"{_PAIR}' in said


def other_label(stream: str) -> str:
    """What texts and steps of a builder call the other object of a pair of this stream."""
    return "other" if stream.casefold() != "other" else "other_"
