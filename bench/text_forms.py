"""Forms of queries as people write them, in any number: tags, EXISTS, events, groups, neighbours of those joined."""

from collections.abc import Callable

from bench.forms import FORMS, Plans, boxes_of, focals_of
from bench.oldenburg import STREAM
from st_common.query.plan import Plan
from st_common.query.text import parse
from st_common.regions.registry import Box

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


def _without_middle(box: Box) -> str:
    """All of a box but a circle in its middle."""
    x, y = (box.minx + box.maxx) / 2, (box.miny + box.maxy) / 2
    return f"INSIDE {box.text()} AND NOT INSIDE CIRCLE ({x}, {y}, 500 m)"


TEXT_FORMS: dict[str, Plans] = {
    "5 nearest WINDOW 1 min": _each_own(
        lambda _, name: f"SELECT * FROM {STREAM} KNN ('M', 5, '{name}') WINDOW 1 min"  # noqa: S608
    ),
    "moving circle AND NOT one around another car": _each_own(
        lambda n, name: (
            f"SELECT * FROM {STREAM} INSIDE ('M', '{name}', 1 km)"  # noqa: S608
            f" AND NOT INSIDE ('M', 'o{n * 7 % 1000}', 1 km)"
        )
    ),
    "box AND NOT a moving circle": lambda queries, objects: _said(
        [
            f"SELECT * FROM {STREAM} INSIDE {box.text()} AND NOT INSIDE ('M', '{name}', 5 km)"  # noqa: S608
            for box, name in zip(
                boxes_of(queries), focals_of(queries, objects), strict=True
            )
        ]
    ),
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
    "WILL ENTER a box WITHIN a time of its own": lambda queries, _: _said(
        [
            f"SELECT * FROM {STREAM} WILL ENTER {box.text()} WITHIN {60 + number % 1000} s"  # noqa: S608
            for number, box in enumerate(boxes_of(queries))
        ]
    ),
    "5 nearest inside of a car's circle": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} INSIDE ('M', '{name}', 1 km) KNN ('M', 5, '{name}')"  # noqa: S608
        )
    ),
    "reverse nearest of a car": _each_own(
        lambda _, name: f"SELECT * FROM {STREAM} REVERSE KNN ('M', '{name}')"  # noqa: S608
    ),
    "group nearest of a car and a place": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} GROUP KNN (2, SUM, (50000, 50000), ('M', '{name}'))"  # noqa: S608
        )
    ),
    "group nearest WHERE a condition of its own": _each_own(
        lambda n, name: (
            f"SELECT * FROM {STREAM} WHERE load > {n % 20} + {n} / 1e6"  # noqa: S608
            f" GROUP KNN (2, SUM, (50000, 50000), ('M', '{name}'))"
        )
    ),
    "a box AND NOT a circle": lambda queries, _: _said(
        [
            f"SELECT * FROM {STREAM} {_without_middle(box)}"  # noqa: S608
            for box in boxes_of(queries)
        ]
    ),
    "DETECT ENTER, EXIT, DWELL in a box": _in_boxes(
        f"SELECT * FROM {STREAM} {{inside}} DETECT ENTER, EXIT, DWELL 2 min"  # noqa: S608
    ),
    "DETECT ENTER, EXIT at a car's circle": _each_own(
        lambda _, name: (
            f"SELECT * FROM {STREAM} INSIDE ('M', '{name}', 1 km) DETECT ENTER, EXIT"  # noqa: S608
        )
    ),
    "FOR 2 minutes in a box": _in_boxes(
        f"SELECT * FROM {STREAM} WHERE load > 5 FOR 2 min {{inside}}"  # noqa: S608
    ),
    "NOT EXISTS another car near, in a box": _in_boxes(
        f"SELECT * FROM {STREAM} a WHERE NOT EXISTS (SELECT 1 FROM {STREAM} b "  # noqa: S608
        "WHERE ST_DWithin(a, b, 1 km)) {inside}"
    ),
    "LEFT JOIN of the stream with itself, in a box": _in_boxes(
        f"SELECT * FROM {STREAM} a LEFT JOIN {STREAM} b ON ST_DWithin(a, b, 1 km) {{inside}}"  # noqa: S608
    ),
    "the farthest of the 5 nearest to a car": _each_own(
        lambda _, name: f"SELECT MAX(distance()) FROM {STREAM} KNN ('M', 5, '{name}')"  # noqa: S608
    ),
    "RSTREAM of COUNT HAVING in a box": _in_boxes(
        f"SELECT RSTREAM(class, COUNT(*) AS n) FROM {STREAM} {{inside}}"  # noqa: S608
        " GROUP BY class HAVING COUNT(*) > 1"
    ),
    "three aggregates by two keys in a box": _in_boxes(
        f"SELECT kind, class, COUNT(*) AS n, AVG(load) AS mean, MEDIAN(load) AS half FROM {STREAM} "  # noqa: S608
        "{inside} GROUP BY kind, class"
    ),
    "COUNT HAVING in a box": _in_boxes(
        f"SELECT class, COUNT(*) AS n FROM {STREAM} {{inside}} GROUP BY class HAVING COUNT(*) > 1"  # noqa: S608
    ),
    "COUNT for each GRID_CELL in a box": _in_boxes(
        f"SELECT grid_cell(500) AS cell, COUNT(*) AS n FROM {STREAM} {{inside}} GROUP BY grid_cell(500)"  # noqa: S608
    ),
    "WHERE in a cell of its own, no region": lambda queries, _: _said(
        [
            f"SELECT * FROM {STREAM} WHERE grid_cell(1000) = '{n * 7919 % 100}:{n * 104_729 % 100}'"  # noqa: S608
            for n in range(queries)
        ]
    ),
    "WHERE a pattern of its own, no region": _each_own(
        lambda n, _: f"SELECT * FROM {STREAM} WHERE object LIKE '%{n}_'"  # noqa: S608
    ),
    "WHERE two columns differ by a number of its own, no region": _each_own(
        lambda n, _: (
            f"SELECT * FROM {STREAM} WHERE floor(y / 1000) = floor(x / 1000) + {n}"  # noqa: S608
        )
    ),
    "WHERE a product is near a number of its own, no region": _each_own(
        lambda n, _: (
            f"SELECT * FROM {STREAM} WHERE abs(load * x - {n * 100}) < 50"  # noqa: S608
        )
    ),
    "DISTINCT classes in a box": _in_boxes(
        f"SELECT DISTINCT class FROM {STREAM} {{inside}}"  # noqa: S608
    ),
    "COUNT of the rows of a query in a box": _in_boxes(
        f"SELECT COUNT(*) FROM (SELECT load FROM {STREAM} {{inside}}) r WHERE load > 10"  # noqa: S608
    ),
    "a car's mean load of 5 minutes, each minute": _each_own(
        lambda _, name: (
            f"SELECT RSTREAM(AVG(load)) FROM {STREAM} [RANGE BY '5 minutes' RATTR TIME, "  # noqa: S608
            f"SLIDE BY '1 minute' SATTR TIME] WHERE object = '{name}'"
        )
    ),
    "a car's mean load since it paused for 5 minutes": _each_own(
        lambda _, name: (
            f"SELECT AVG(load) FROM {STREAM} [SESSION 5 min] WHERE object = '{name}'"  # noqa: S608
        )
    ),
}

ALL_FORMS: dict[str, Plans] = {**FORMS, **TEXT_FORMS}
"""What is asked in the table: per form the plans of so many queries among so many objects."""
