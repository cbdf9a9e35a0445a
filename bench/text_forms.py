"""Forms of queries as people write them, in any number: tags, EXISTS, greatest groups, neighbours of those joined."""

from collections.abc import Callable

from bench.forms import FORMS, Plans, boxes_of, focals_of
from bench.oldenburg import STREAM
from st_common.query.plan import Plan
from st_common.query.text import parse

_JOINED = f"FROM {STREAM} t JOIN squares q ON ST_Intersects(t, q)"
_IN_SQUARE = "EXISTS (SELECT 1 FROM squares q WHERE ST_Intersects(t, q))"


def _said(texts: list[str]) -> list[Plan]:
    """The plans of texts."""
    statements = parse(
        ";\n".join(
            f"REGISTER QUERY q{number} AS {text}" for number, text in enumerate(texts)
        )
    )
    return [one.plan for one in statements if one.plan is not None]


def _in_boxes(text: str) -> Plans:
    """The same text with a box each."""
    return lambda queries, _: _said(
        [text.format(inside=f"INSIDE {box.text()}") for box in boxes_of(queries)]
    )


def _each_own(text: Callable[[int, str], str]) -> Plans:
    """A text for each number and car."""
    return lambda queries, objects: _said(
        [text(n, name) for n, name in enumerate(focals_of(queries, objects))]
    )


def _ahead(within: str) -> Plans:
    """Who will enter a box each."""
    return lambda queries, _: _said(
        [
            f"SELECT * FROM {STREAM} WILL ENTER {box.text()} {within}"  # noqa: S608
            for box in boxes_of(queries)
        ]
    )


TEXT_FORMS: dict[str, Plans] = {
    "layer join in a box WHERE a tag": _in_boxes(
        f"SELECT * {_JOINED} WHERE t.load > TRY_CAST(q.least AS DOUBLE) {{inside}}"
    ),
    "layer join WHERE one object and a tag": _each_own(
        lambda _, name: (
            f"SELECT * {_JOINED} WHERE object = '{name}' AND t.load > TRY_CAST(q.least AS DOUBLE)"
        )
    ),
    "tags as columns in a box": _in_boxes(
        f"SELECT t.kind AS kind, q.name AS name {_JOINED} {{inside}}"
    ),
    "COUNT for each tag in a box": _in_boxes(
        f"SELECT q.name, COUNT(*) AS n {_JOINED} {{inside}} GROUP BY q.name"
    ),
    "EXISTS in a box": _in_boxes(
        f"SELECT * FROM {STREAM} t WHERE {_IN_SQUARE} {{inside}}"  # noqa: S608
    ),
    "NOT EXISTS in a box": _in_boxes(
        f"SELECT * FROM {STREAM} t WHERE NOT {_IN_SQUARE} {{inside}}"  # noqa: S608
    ),
    "the 3 greatest of 100 groups in a box": _in_boxes(
        f"SELECT class, COUNT(*) AS n FROM {STREAM} {{inside}} GROUP BY class ORDER BY n DESC LIMIT 3"  # noqa: S608
    ),
    "INSIDE FEATURE of a car": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} t WHERE object = '{name}' INSIDE FEATURE (squares, t.zone)"  # noqa: S608
        )
    ),
    "5 nearest of those in squares": _each_own(
        lambda _, name: f"SELECT * {_JOINED} KNN ('M', 5, '{name}')"
    ),
    "ST_DWithin of a car": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} a JOIN {STREAM} b ON ST_DWithin(a, b, 1 km) "  # noqa: S608
            f"WHERE a.object = '{name}'"
        )
    ),
    "WILL ENTER a box WITHIN 5 minutes": _ahead("WITHIN 5 min"),
    "WILL ENTER a box WITHIN 5 minutes BY SPEED": _ahead("WITHIN 5 min BY SPEED"),
    "5 nearest inside of a car's circle": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} INSIDE ('M', '{name}', 1 km) KNN ('M', 5, '{name}')"  # noqa: S608
        )
    ),
}

ALL_FORMS: dict[str, Plans] = {**FORMS, **TEXT_FORMS}
"""What is asked in the table: per form the plans of so many queries among so many objects."""
