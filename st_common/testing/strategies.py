"""Random streams for property tests: few objects on a small grid, so that borders, corners and ties are hit often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import shapely
from hypothesis import strategies as st

from st_common.query.plan import Box, Emit, LayerJoin, Plan
from st_common.testing.oracle import Control, Feature, Fix, Layers, Row, Rules

STREAM = "grid"
LAYER = "shapes"
START_US = 1_699_999_980_000_000  # a whole second shortly before an hour, UTC
SECOND_US = 1_000_000
OBJECTS = ("a", "b", "c", "d", "é 1")
NAMES = ("q1", "q2", "q3")
SIZE = 8  # coordinates are 0, 0.5, .. 8

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


def coordinates() -> st.SearchStrategy[float]:
    """Halves from 0 to 8: few enough to meet borders and each other."""
    return st.integers(0, 2 * SIZE).map(lambda half: half / 2)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Rectangles on the grid; some are lines or points."""
    x1, x2 = sorted((draw(coordinates()), draw(coordinates())))
    y1, y2 = sorted((draw(coordinates()), draw(coordinates())))
    return Box(minx=x1, miny=y1, maxx=x2, maxy=y2)


@st.composite
def plans(draw: st.DrawFn, *, layers: bool = False) -> Plan:
    """Plans on the stream `grid`; with `layers`, most join the layer `shapes`, some inside a box too."""
    emit: Emit = draw(st.sampled_from(("changes", "every")))
    join = draw(st.none() | _joins()) if layers else None
    inside = draw(boxes()) if join is None else draw(st.none() | boxes())
    return Plan(stream=STREAM, inside=inside, join=join, emit=emit)


@st.composite
def _joins(draw: st.DrawFn) -> LayerJoin:
    kinds = draw(st.sampled_from(((), ("park",), ("park", "road"))))
    if draw(st.booleans()):
        return LayerJoin(layer=LAYER, predicate="intersects", kinds=kinds)
    return LayerJoin(layer=LAYER, predicate="dwithin", distance_m=draw(st.sampled_from((0.5, 1.0, 2.5))), kinds=kinds)


@st.composite
def features(draw: st.DrawFn) -> list[Feature]:
    """The features of one version of a layer, at most five: squares with and without a hole, lines, points."""
    found: list[Feature] = []
    for number in range(draw(st.integers(0, 5))):
        x, y, side = draw(coordinates()), draw(coordinates()), draw(st.sampled_from((1.0, 2.0, 4.0)))
        square = shapely.box(x, y, x + side, y + side)
        shapes = {
            "square": square,
            "ring": square.difference(shapely.box(x + 0.25, y + 0.25, x + side - 0.25, y + side - 0.25)),
            "line": shapely.LineString([(x, y), (x + side, y), (x + side, y + side)]),
            "point": shapely.Point(x, y),
        }
        shape = shapes[draw(st.sampled_from(sorted(shapes)))]
        found.append(Feature(f"w{number}", draw(st.sampled_from(("park", "road", "other"))), shape))
    return found


def rules() -> st.SearchStrategy[Rules]:
    """Lateness and silence, each off in about half of the cases; whole seconds."""
    return st.builds(
        Rules,
        lateness_us=st.sampled_from((0, 0, 2, 5)).map(lambda s: s * SECOND_US),
        silence_us=st.sampled_from((None, None, 4, 10)).map(lambda s: None if s is None else s * SECOND_US),
    )


def streams(
    *, layers: bool = False, layer_versions: Sequence[int] = (0, 1, 2), max_rows: int = 40, min_rows: int = 1
) -> st.SearchStrategy[list[Row]]:
    """Rows of a log that a registry would allow: disorder, ties, doubles, late, gone, gaps, control rows.

    With `layers`, registrations name the layer's version then: the first of `layer_versions`, or the last layer row's.
    """
    plan = plans(layers=layers)
    step = st.one_of(
        *[st.tuples(st.just("fix"), st.sampled_from(OBJECTS), _leaps(), coordinates(), coordinates())] * 6,
        st.tuples(st.just("again"), st.integers(0, 6), coordinates(), coordinates()),
        st.tuples(st.just("gone"), st.sampled_from(OBJECTS), _leaps()),
        st.tuples(st.just("clock"), _leaps()),
        st.tuples(st.sampled_from(("register", "register", "replace", "drop")), st.sampled_from(NAMES), plan),
        *([st.tuples(st.just("layer"))] if layers else []),
    )
    first = st.tuples(st.just("register"), st.just(NAMES[0]), plan)
    steps = st.tuples(first, st.lists(step, min_size=min_rows, max_size=max_rows), st.booleans())
    return steps.map(lambda drawn: _rows([drawn[0], *drawn[1]], list(layer_versions), ends=drawn[2]))


@st.composite
def cases(draw: st.DrawFn, *, layers: bool | None = None, layer_versions: Sequence[int] = (0, 1, 2)) -> Case:
    """Streams with settings and, with `layers` (None: in half of the cases), three versions of the layer `shapes`."""
    joined = draw(st.booleans()) if layers is None else layers
    held = {(LAYER, version): draw(features()) for version in layer_versions} if joined else {}
    rows = draw(streams(layers=joined, layer_versions=layer_versions))
    return Case(rows=tuple(rows), layers=held, rules=draw(rules()))


@st.composite
def segmentations(draw: st.DrawFn, rows: int) -> Segmentation:
    """Random cuts of so many rows into segments, and of those into batches; one segment and one row each are in it."""
    if draw(st.booleans()):
        cuts = draw(st.lists(st.integers(1, max(1, rows - 1)), unique=True, max_size=rows).map(sorted))
    else:
        every = draw(st.integers(1, max(1, rows)))
        cuts = list(range(every, rows, every))
    cuts = [cut for cut in cuts if cut < rows]
    return Segmentation(cuts=tuple(cuts), batches=tuple(draw(st.lists(st.integers(1, 4), max_size=rows))))


def _leaps() -> st.SearchStrategy[int]:
    """How far a time is from the largest so far, in microseconds: mostly a little ahead, at times behind or far."""
    halves = st.sampled_from((2, 2, 1, 1, 3, 4, 0, 0, -1, -2, -4, -5, -10, -12, 8, 11, 20, 21, 40))
    return st.tuples(halves, st.sampled_from((0, 0, 0, 0, 0, 1, -1))).map(lambda t: t[0] * SECOND_US // 2 + t[1])


def _rows(steps: list[Step], layer_versions: list[int], *, ends: bool) -> list[Row]:
    """The rows of drawn steps; a step that a registry would refuse becomes the nearest one that it would take."""
    rows: list[Row] = []
    versions: dict[str, int] = {}
    alive: dict[str, None] = {}
    fixes: list[Fix] = []
    ahead, seen = layer_versions.copy(), START_US  # the first of `ahead` is the layer's version now
    for step in steps:
        row: Row | None
        if step[0] in ("fix", "gone"):
            row = _fix(len(rows), step, seen)
        elif step[0] == "again":
            row = _again(len(rows), step, fixes)
        elif step[0] == "clock":
            row = Control(position=len(rows), row={"op": "clock", "ts": seen + step[1]})
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
    return rows + ([Control(position=len(rows), row={"op": "end"})] if ends else [])


def _fix(position: int, step: Step, seen: int) -> Fix:
    if step[0] == "gone":
        return Fix(position=position, object=step[1], event_us=seen + step[2], gone=True)
    return Fix(position=position, object=step[1], event_us=seen + step[2], x=step[3], y=step[4])


def _again(position: int, step: Step, fixes: list[Fix]) -> Fix | None:
    """The object and time of an earlier fix once more, elsewhere."""
    if not fixes:
        return None
    old = fixes[max(0, len(fixes) - 1 - step[1])]
    return Fix(position=position, object=old.object, event_us=old.event_us, x=step[2], y=step[3])


def _layer(position: int, ahead: list[int]) -> Control | None:
    if len(ahead) == 1:
        return None
    del ahead[0]
    return Control(position=position, row={"op": "layer", "layer": LAYER, "version": ahead[0]})


def _query(position: int, step: Step, versions: dict[str, int], alive: dict[str, None], layer_version: int) -> Control:
    op, name, plan = step
    if op == "drop" and name in alive:
        del alive[name]
        return Control(position=position, row={"op": "drop", "query": name})
    op = "replace" if name in alive else "register"
    versions[name] = versions.get(name, 0) + 1
    alive[name] = None
    row = {"op": op, "query": name, "version": versions[name], "plan": plan.to_json(), "text": "", "owner": "test"}
    if plan.join is not None:
        row["layer_version"] = layer_version
    return Control(position=position, row=row)
