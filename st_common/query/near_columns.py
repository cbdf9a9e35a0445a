"""What a member's place among the nearest is called in the expressions of plans, beside the columns of its fix.

written         in the plan
rank()          "near.rank": 1 for the nearest
distance()      "near.distance_m": how far it is from the place of KNN
"""

from types import MappingProxyType

_NEAR = "near."
RANK, DISTANCE = f"{_NEAR}rank", f"{_NEAR}distance_m"
CALLS = MappingProxyType({"RANK": RANK, "DISTANCE": DISTANCE})
"""The columns by the function, without arguments, that says each."""
TYPES = MappingProxyType({RANK: "BIGINT", DISTANCE: "DOUBLE"})
"""Their types in DuckDB."""


def is_of_near(name: str) -> bool:
    """Whether a column is one of these, by its name in any case."""
    return name.casefold().startswith(_NEAR)


def names_near(text: str) -> bool:
    """Whether an expression may name one of these columns: whether such a name begins anywhere in it."""
    return f'"{_NEAR}' in text.casefold()
