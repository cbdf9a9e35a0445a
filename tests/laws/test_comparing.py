"""The laws for boxes that are enlarged, filtered and compared: on the grid, with layers' tables, on degrees."""

import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.query.comparing import Compare, Transform
from st_common.query.plan import Aggregate, LayerJoin, Plan, Window
from st_common.reference.metric import Metric
from st_common.regions.registry import Box, MovingBox
from tests.kit import oracle
from tests.kit.archived import run_through
from tests.kit.effort import tries
from tests.kit.laws import holds, told, told_by_oracle
from tests.kit.layer_tables import store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.random_grid import FOCALS, LAYER, OBJECTS, STREAM
from tests.kit.strategies import case_of, cases, courses

SEEDS = st.integers(0, (1 << 48) - 1)


@st.composite
def lives(draw):
    case = draw(cases(kind="comparing"))
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("B8", "B10", "B12", "X1", "X2")
@tries(40)
@given(lives())
def test_however_they_are_run_they_tell_what_brute_force_tells(life):
    holds(*life)


def ran(home, case, stream):
    """Runs a case through an engine with tables; gives back its changes, and the place in the case of each position."""
    written = write_log(home.log("grid"), case.rows, range(0, len(case.rows), 15))
    run_through(home, stream)
    return tables.read(home.table("changes", "grid")), written.order


def check_engine(case):
    """The engine tells what brute force tells, with the layers in tables, and every answer verifies."""
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        case = store_layers(home, case)
        changes, order = ran(home, case, stream)
        assert [found.query for found in verify(home, stream) if not found.holds] == []
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, order) == told_by_oracle(expected.changes)


@pytest.mark.spec("B8", "B9", "B10", "X1")
@tries(8)
@given(cases(kind="comparing", layers=True))
def test_layers_by_region_tell_what_brute_force_tells_and_answers_hold(case):
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    check_engine(case)


LATITUDES = (-84.3, -33.9, 0.2, 41.1, 60.2, 84.9)
EXTENTS_M = (100.0, 2000.0, 7300.0)
STEPS_M = (49.85, 50.15, 997.0, 1003.0, 3640.0, 3660.0, 4637.0, 4663.0)
"""How far fixes are from a corner on either axis, to either side: 0.3 % less or more than boxes reach."""
LONGITUDE = 20.0
SIDE = 0.5  # degrees, of the boxes that are met: farther than any step


def test_no_extent_ends_near_a_step_where_engine_and_brute_force_could_differ():
    halves = [(a + b) / 2 for a in EXTENTS_M for b in (0.0, *EXTENTS_M)]
    assert all(b > a * 1.0005 for a, b in pairwise(sorted([*STEPS_M, *set(halves)])))


def scale(latitude):
    """Metres per degree of longitude, and of latitude."""
    return [float(one) for one in Metric(is_flat=False).scale(latitude)]


def corner(rng):
    return LONGITUDE, rng.choice(LATITUDES)


def beside(rng, latitude):
    """A place some metres from a corner; only latitudes of places are exact in metres, so longitudes are from there."""
    x, y = (
        LONGITUDE,
        latitude + rng.choice((-1, 1)) * rng.choice(STEPS_M) / scale(latitude)[1],
    )
    return x + rng.choice((-1, 1)) * rng.choice(STEPS_M) / scale(y)[0], y


def box_at(x, y, rng):
    """A box with one corner there."""
    across, along = (
        rng.choice((-SIDE, SIDE)) * (90 / (91 - abs(y))),
        rng.choice((-SIDE, SIDE)) / 5,
    )
    return Box.of_corners(x, y, x + across, y + along)


def plan_of(rng, latitude):
    steps = [
        Transform(kind="metres", amount=rng.choice(EXTENTS_M))
        for _ in range(rng.randint(0, 2))
    ]
    if rng.random() < 0.3:
        steps.append(Transform(kind="box", box=box_at(LONGITUDE, latitude, rng)))
    if rng.random() < 0.2:
        steps.append(Transform(kind="key", text=rng.choice(OBJECTS)))
    compare = Compare(box=box_at(LONGITUDE, latitude, rng), negative=rng.random() < 0.4)
    plan = Plan(stream=STREAM, transforms=tuple(steps), compare=compare)
    alpha = Box.of_corners(
        LONGITUDE - 60, latitude - 0.05, LONGITUDE + 60, latitude + 5
    )
    return rng.choice(
        (
            plan,
            plan,
            replace(plan, inside=alpha),
            replace(plan, window=Window(tuples=2)),
            replace(plan, aggregate=Aggregate(function="count")),
            replace(
                plan,
                inside=MovingBox(focal=rng.choice(FOCALS), width=200.0, height=10.0),
            ),
            replace(
                plan,
                join=LayerJoin(
                    layer=LAYER, predicate=rng.choice(("intersects", "within"))
                ),
            ),
        )
    )


def on_degrees(seed):
    """A case whose fixes lie around corners of the boxes that its queries compare them with."""
    case, rng, rows = case_of(seed, kind="fixes", layers=True), Random(seed), []
    latitude = rng.choice(LATITUDES)
    for row in case.rows:
        if isinstance(row, oracle.Fix):
            x, y = beside(rng, latitude)
            rows.append(row if row.gone else replace(row, x=x, y=y))
        elif row.row["op"] == "follow":
            continue  # it could only say the plan before with another area
        elif "plan" in row.row:
            plan = plan_of(rng, latitude)
            rows.append(
                replace(
                    row, row={**row.row, "plan": plan.to_json(), "layer_version": 0}
                )
            )
        elif row.row["op"] != "layer":
            rows.append(row)
    features = [
        oracle.Feature(
            f"f{n}", "park", shapely.box(*box_edges(box_at(LONGITUDE, latitude, rng)))
        )
        for n in range(2)
    ]
    rows = [replace(row, position=number) for number, row in enumerate(rows)]
    return replace(
        case,
        rows=tuple(rows),
        layers={(LAYER, 0): features},
        rules=replace(case.rules, geographic=True),
    )


def box_edges(box):
    return box.minx, box.miny, box.maxx, box.maxy


@pytest.mark.spec("B8", "B10", "X1")
@tries(25)
@given(SEEDS)
def test_metres_on_degrees_tell_what_brute_force_tells_and_answers_hold(seed):
    case = on_degrees(seed)
    check_engine(case)
