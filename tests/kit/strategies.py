"""Random streams for property tests: few objects on a small grid, so that borders, corners and ties are hit often.

A case comes from a seed, and from which of its rows are left out: hypothesis finds the smallest case that way, and does
not try one case again and again with small differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import shapely
from hypothesis import strategies as st

from st_common.controls.rows import (
    Clock,
    Drop,
    End,
    Fail,
    Follow,
    LayerVersion,
    Register,
    Replace,
)
from st_common.query.plan import Plan
from tests.kit.control_rows import control
from tests.kit.oracle import Control, Feature, Filter, Fix, Layers, Row, Rules
from tests.kit.random_fences import other_options
from tests.kit.random_grid import LAYER, OBJECTS, STREAM, coordinate
from tests.kit.random_plans import elsewhere, plan_of

__all__ = [
    "LAYER",
    "MARGINS",
    "STREAM",
    "Case",
    "Course",
    "Segmentation",
    "case_of",
    "cases",
    "courses",
    "filters",
    "rules_of",
    "segmentations",
]

START_US = 1_699_999_980_000_000  # a whole second shortly before an hour, UTC
SECOND_US = 1_000_000
NAMES = ("q1", "q2", "q3")
READINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"kind": "taxi", "load": 2.5, "seats": 2, "free": True},
    {"kind": "taxi", "load": 1.0, "seats": 3, "free": False},
    {"kind": "bus", "load": 4.0, "seats": 2, "free": True},
    {"kind": "bus", "seats": 1},
    {"kind": "taxi", "load": 4.0, "free": True},
    {"load": 2.5, "seats": 3, "free": False},
    {"kind": "NULL", "load": 1.0, "seats": 2},
    {"kind": "'NULL'", "load": 4.0},
)
"""The attributes of fixes: few, with nulls, so that groups and keys meet; sums of them are exact in any order."""
LEAPS = (1, 2, 1, 1, 2, 0, 3, 4, 0, 0, 1, 2, 1, 1, -1, -2, -4, -5, -10, 8, 11, 21)
"""How far a time is from the largest so far, in halves of a second: mostly a little ahead, at times behind or far."""
OPS = ("fix",) * 14 + (
    *("again", "gone", "clock", "query", "query", "drop", "fail", "follow"),
)

_SECONDS = SECOND_US.__mul__

Step = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stream with its settings and layers; positions are the places in `rows`, whatever segments they get into."""

    rows: tuple[Row, ...]
    layers: Layers
    rules: Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Segmentation:
    """Where rows are cut into segments (the first row of each new one), and how many segments each batch takes.

    What is beyond the sum of `batches` goes into one more batch.
    """

    cuts: tuple[int, ...]
    batches: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a case is run, none of which may show in what is told.

    `restarts` are the batches before and after which all is written and read back: nothing stays in memory there.
    `margin` is the width of the caches, 0 for none; with `refills` off they are never filled anew.
    """

    cut: Segmentation
    shards: int
    restarts: frozenset[int]
    margin: float
    refills: bool = True


def case_of(
    seed: int,
    *,
    kind: str | None = None,
    layers: bool = False,
    layer_versions: Sequence[int] = (0, 1, 2),
    kept: Sequence[bool] = (True,) * 60,
    names: Sequence[str] = NAMES,
) -> Case:
    """The case of a seed, with the rows of a log that a registry would allow: disorder, doubles, late, gone, gaps.

    The queries are of one kind (see `random_plans`), or of all; with `layers` there are versions of the layer `shapes`,
    and registrations name the version then: the first of `layer_versions`, or the last layer row's. Of the steps of
    the seed, those are left out for which `kept` is not true.
    """
    rng = Random(seed)
    steps = [_step(rng, kind, names, layers=layers) for _ in kept]
    first = ("query", names[0], plan_of(rng, kind, layers=layers))
    used = [
        first,
        *(step for step, is_kept in zip(steps, kept, strict=True) if is_kept),
    ]
    case = (
        {(LAYER, version): draw_features(rng) for version in layer_versions}
        if layers
        else {}
    )
    rows = _rows(used, list(layer_versions), ends=rng.random() < 0.5)
    return Case(rows=tuple(rows), layers=case, rules=rules_of(rng))


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    kind: str | None = None,
    layers: bool | None = None,
    layer_versions: Sequence[int] = (0, 1, 2),
    rows: int = 60,
) -> Case:
    """Cases of up to so many rows (see `case_of`); with `layers` None, half of them have some."""
    seed = draw(st.integers(0, (1 << 48) - 1))
    joined = draw(st.booleans()) if layers is None else layers
    kept = draw(st.lists(st.integers(0, 3).map(bool), min_size=rows, max_size=rows))
    case = case_of(
        seed, kind=kind, layers=joined, layer_versions=layer_versions, kept=kept
    )
    if draw(st.integers(0, 2)):
        return case
    return replace(case, rules=replace(case.rules, filters=((0, draw(filters())),)))


def _or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Filters that on the grid let some fixes pass and others not; how good a fix is says the attribute `load`."""
    return Filter(
        accuracy="load",
        max_accuracy_m=draw(_or_none(st.sampled_from((2.5, 3.0)))),
        beyond_accuracy=draw(st.booleans()),
        min_distance_m=draw(_or_none(st.sampled_from((0.5, 1.0, 2.0)))),
        max_speed_mps=draw(_or_none(st.sampled_from((1.0, 2.0, 4.0)))),
        accept_after_us=draw(_or_none(st.sampled_from((1, 3, 8)).map(_SECONDS))),
    )


def rules_of(rng: Random) -> Rules:
    """Lateness and silence, each off in about half of the cases; whole seconds. Ticks are mostly a second."""
    silence_s = rng.choice((None, None, 4, 10))
    return Rules(
        tick_us=round(rng.choice((1, 1, 1, 2, 0.5)) * SECOND_US),
        lateness_us=rng.choice((0, 0, 2, 5)) * SECOND_US,
        silence_us=None if silence_s is None else silence_s * SECOND_US,
    )


def _step(rng: Random, kind: str | None, names: Sequence[str], *, layers: bool) -> Step:
    op = rng.choice((*OPS, "layer") if layers else OPS)
    leap = rng.choice(LEAPS) * SECOND_US // 2 + rng.choice((0, 0, 0, 0, 0, 1, -1))
    place = coordinate(rng), coordinate(rng), rng.choice(READINGS)
    if op == "query":
        return op, rng.choice(names), plan_of(rng, kind, layers=layers)
    return {
        "fix": ("fix", rng.choice(OBJECTS), leap, *place),
        "again": ("again", rng.randrange(7), *place),
        "gone": ("gone", rng.choice(OBJECTS), leap),
        "clock": ("clock", leap),
        "drop": ("drop", rng.choice(names)),
        "fail": ("fail", rng.choice(names), rng.choice((0, 0, 1))),
        "follow": ("follow", rng.choice(names), Random(rng.random())),
        "layer": ("layer",),
    }[op]


def draw_features(rng: Random) -> list[Feature]:
    """The features of one version of a layer, at most five: squares with and without a hole, lines, points."""
    features: list[Feature] = []
    for number in range(rng.randint(0, 5)):
        x, y, side = coordinate(rng), coordinate(rng), rng.choice((1.0, 2.0, 4.0))
        square = shapely.box(x, y, x + side, y + side)
        shape = rng.choice(
            (
                square,
                square.difference(
                    shapely.box(x + 0.25, y + 0.25, x + side - 0.25, y + side - 0.25)
                ),
                shapely.LineString([(x, y), (x + side, y), (x + side, y + side)]),
                shapely.Point(x, y),
            )
        )
        tags: Mapping[str, str] = rng.choice(
            ({}, {"size": "2"}, {"size": "3", "line": "bus"}, {"line": "taxi"})
        )
        fid = rng.choice((f"w{number}", f"w{number}", OBJECTS[number]))
        features.append(Feature(fid, rng.choice(("park", "road", "taxi")), shape, tags))
    return features


@st.composite
def segmentations(draw: st.DrawFn, rows: int) -> Segmentation:
    """Random cuts of so many rows into segments, and of those into batches; one segment and one row each are in it."""
    if draw(st.booleans()):
        cuts = draw(
            st.lists(st.integers(1, max(1, rows - 1)), unique=True, max_size=rows).map(
                sorted
            )
        )
    else:
        every = draw(st.integers(1, max(1, rows)))
        cuts = list(range(every, rows, every))
    cuts = [cut for cut in cuts if cut < rows]
    return Segmentation(
        cuts=tuple(cuts),
        batches=tuple(draw(st.lists(st.integers(1, 4), max_size=rows))),
    )


MARGINS = (0.0, 0.5, 1.5, 4.0, 40.0)
"""Widths of caches on the grid: less than a step of an object, some steps, more than everything."""


@st.composite
def courses(
    draw: st.DrawFn,
    rows: int,
    *,
    margins: Sequence[float] = MARGINS,
    shards: Sequence[int] = (1, 2, 3, 7),
) -> Course:
    """Ways to run a case of so many rows: batches, shards, caches, and where it starts again from bytes."""
    cut = draw(segmentations(rows))
    some = st.sets(st.integers(0, rows), max_size=6)
    return Course(
        cut=cut,
        shards=draw(st.sampled_from(shards)),
        margin=draw(st.sampled_from(margins)),
        refills=draw(st.booleans()),
        restarts=frozenset(
            draw(st.one_of(st.just(set()), some, st.just(set(range(2 * rows)))))
        ),
    )


def _rows(steps: list[Step], layer_versions: list[int], *, ends: bool) -> list[Row]:
    """The rows of drawn steps; a step that a registry would refuse becomes the nearest one that it would take."""
    rows: list[Row] = []
    versions: dict[str, int] = {}
    alive: dict[str, Plan] = {}
    fixes: list[Fix] = []
    ahead, seen = (
        layer_versions.copy(),
        START_US,
    )  # the first of `ahead` is the layer's version now
    for step in steps:
        row: Row | None
        if step[0] in ("fix", "gone"):
            row = _fix(len(rows), step, seen)
        elif step[0] == "again":
            row = _again(len(rows), step, fixes)
        elif step[0] == "clock":
            row = control(Clock(ts_us=seen + step[1]), len(rows))
        elif step[0] == "layer":
            row = _layer(len(rows), ahead)
        else:
            row = _query(len(rows), step, versions, alive, ahead[0])
        if isinstance(row, Fix):
            fixes.append(row)
            seen = max(seen, row.event_us)
        elif row is not None and row.row["op"] == "clock":
            seen = max(seen, row.row["ts"])
        rows += [row] if row is not None else []
    return rows + ([control(End(), len(rows))] if ends else [])


def _fix(position: int, step: Step, seen: int) -> Fix:
    if step[0] == "gone":
        return Fix(
            position=position, object=step[1], event_us=seen + step[2], gone=True
        )
    return Fix(
        position=position,
        object=step[1],
        event_us=seen + step[2],
        x=step[3],
        y=step[4],
        attributes=step[5],
    )


def _again(position: int, step: Step, fixes: list[Fix]) -> Fix | None:
    """The object and time of an earlier fix once more, elsewhere."""
    if not fixes:
        return None
    old = fixes[max(0, len(fixes) - 1 - step[1])]
    return Fix(
        position=position,
        object=old.object,
        event_us=old.event_us,
        x=step[2],
        y=step[3],
        attributes=step[4],
    )


def _layer(position: int, ahead: list[int]) -> Control | None:
    if len(ahead) == 1:
        return None
    del ahead[0]
    return control(LayerVersion(layer=LAYER, version=ahead[0]), position)


def _query(
    position: int,
    step: Step,
    versions: dict[str, int],
    alive: dict[str, Plan],
    layer_version: int,
) -> Control | None:
    if step[0] == "drop":
        if step[1] not in alive:
            return None
        del alive[step[1]]
        return control(Drop(query=step[1]), position)
    if step[0] == "fail":  # sometimes of the version before: that one is passed over
        if step[1] not in alive:
            return None
        version = versions[step[1]] - step[2]
        return control(Fail(query=step[1], version=version, why="it raises"), position)
    if step[0] == "follow":
        return _follow(position, step, versions, alive)
    _, name, plan = step
    kind = Replace if name in alive else Register
    if name in alive:
        plan = other_options(alive[name], plan, position)
    versions[name] = versions.get(name, 0) + 1
    alive[name] = plan
    row = kind(
        query=name,
        version=versions[name],
        plan=plan.to_json(),
        text="",
        owner="test",
        layer_version=None if plan.join is None else layer_version,
    )
    return control(row, position)


def _follow(
    position: int,
    step: Step,
    versions: dict[str, int],
    alive: dict[str, Plan],
) -> Control | None:
    """The query's region is another one of its kind; None where no area could be it."""
    _, name, rng = step
    plan = elsewhere(rng, alive[name]) if name in alive else None
    if plan is None:
        return None
    alive[name] = plan
    row = Follow(
        query=name,
        version=versions[name],
        plan=plan.to_json(),
        areas=("somewhere",),
        layer=rng.choice((None, "districts")),
    )
    return control(row, position)


@st.composite
def filtered_cases(draw: st.DrawFn) -> Case:
    """Cases without queries of layers, half of them with a filter from some row on."""
    case = draw(cases(layers=False))
    starts = draw(st.sampled_from([(), (0,), (5,)]))
    found = tuple((start, draw(filters())) for start in starts)
    return replace(case, rules=replace(case.rules, filters=found))
