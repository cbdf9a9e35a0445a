"""What the columns of a pair are called in the expressions of plans, beside those of its first object.

written                             in the plan
a.speed_mps, or speed_mps           speed_mps
b.speed_mps                         "other.speed_mps"
distance(a, b)                      "pair.distance_m"
bearing(a, b)                       "pair.bearing_deg"

Of a fix and a feature of a layer:

r.name                              "other.name"
t.speed_mps > r.maxspeed            "other.maxspeed in m/s": the speed that the tag says
t.speed > r.maxspeed                "other.maxspeed in km/h", where the settings say speed = "double km/h"
distance(t, r)                      "pair.distance_m": from the fix to the nearest point of the feature, 0 inside
border_distance(t, r)               "pair.border_m": from the fix to the outline of the feature, from inside too
nearest_x(t, r), nearest_y(t, r)    "pair.nearest_x", "pair.nearest_y": that point; the fix itself inside
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import MappingProxyType

from st_common.config.units import Measure, unit_of
from st_common.query import near_columns

OTHER = "other."
"""Stands before the name of a column of the other object."""
_PAIR = "pair."
DISTANCE, BEARING = f"{_PAIR}distance_m", f"{_PAIR}bearing_deg"
BORDER = f"{_PAIR}border_m"
NEAREST = (f"{_PAIR}nearest_x", f"{_PAIR}nearest_y")
"""The point of a feature that is nearest to a fix."""
OF_OBJECTS = MappingProxyType({"DISTANCE": DISTANCE, "BEARING": BEARING})
OF_FEATURES = MappingProxyType(
    {
        "DISTANCE": DISTANCE,
        "BORDER_DISTANCE": BORDER,
        **dict(zip(("NEAREST_X", "NEAREST_Y"), NEAREST, strict=True)),
    }
)
MEASURES = MappingProxyType({**OF_OBJECTS, **OF_FEATURES})
"""What is measured between the two, by the function that says it: between two objects, and to a feature."""

_IN = " in "


def as_speed(name: str, unit: str = "m/s") -> str:
    """What the speed is called that a tag says, by what the tag is called; `unit` is one of speed."""
    return f"{name}{_IN}{unit}"


def speed_tag(name: str) -> tuple[str, Measure] | None:
    """The tag whose speed a column is, and one of the unit that it is in; None for any other column."""
    tag, _, said = (own_name(name) or "").rpartition(_IN)
    unit = unit_of(said) if tag else None
    return (tag, unit) if unit is not None and unit.domain == "speed" else None


def of_feature(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The columns of a fix and a feature among some, with their types.

    Tags are texts, speeds that they say numbers; so is the distance.
    """
    for name in names:
        if name in OF_FEATURES.values():
            yield name, "DOUBLE"
        elif own_name(name) is not None:
            yield name, "VARCHAR" if speed_tag(name) is None else "DOUBLE"


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
    said = (*MEASURES.items(), *near_columns.CALLS.items())
    functions = {column: function.lower() for function, column in said}
    return functions.get(name) or own_name(name) or name


def of_pair(own: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The columns that a pair has beside those of its first object, with their types.

    Args:
        own: names and types in DuckDB of the columns of one object.
    """
    yield from ((of_other(name), kind) for name, kind in own)
    yield from ((name, "DOUBLE") for name in OF_OBJECTS.values())


def names_pair(text: str) -> bool:
    """Whether an expression may name a column of a pair: whether such a name begins anywhere in it."""
    said = text.casefold()
    return f'"{OTHER}' in said or f'"{_PAIR}' in said


def is_other_column(name: str) -> bool:
    """Whether a column is none of the fix: one of a pair, or of a member's place among the nearest."""
    return is_of_pair(name) or near_columns.is_of_near(name)


def names_other_columns(text: str) -> bool:
    """Whether an expression may name such a column."""
    return names_pair(text) or near_columns.names_near(text)


@lru_cache(maxsize=4096)
def pair_names(text: str) -> tuple[str, ...]:
    """The columns of a pair that an expression names, each once."""
    if not names_pair(text):
        return ()
    from sqlglot import exp  # slow to import, and most expressions name none

    from st_common.query.grammar.statements import expression_of

    names = (column.name for column in expression_of(text).find_all(exp.Column))
    return tuple(dict.fromkeys(name for name in names if is_of_pair(name)))


def other_label(stream: str) -> str:
    """What texts and steps of a builder call the other object of a pair of this stream."""
    return "other" if stream.casefold() != "other" else "other_"
