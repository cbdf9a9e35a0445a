"""H3_CELL and GRID_CELL: the cells that H3 and a ruler give, as keys, values, conditions, in every batching (X12)."""

import h3
import numpy as np
import pyarrow as pa
import pytest

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.operators.expressions.evaluation import evaluated
from st_common.query.registry import carry_out
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import clock, end, fix, gone, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Rules
from tests.kit.strategies import Case, Segmentation

pytestmark = pytest.mark.spec("X12")
TALLINN, TARTU = (24.7536, 59.4370), (26.7251, 58.3780)
HOW = [{}, {"cuts": (2, 3, 5)}, {"shards": 3, "restarts": frozenset({0, 1})}]


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def told(text, rows, *, geographic, cuts=(), **how):
    rows = tuple(log(register("q", plan_of(text)), *rows, end()))
    rules = Rules(tick_us=1_000_000, geographic=geographic)
    case = Case(rows=rows, layers={}, rules=rules)
    changes, _, _ = run_steps(case, Segmentation(cuts=cuts, batches=()), **how)
    shown = changes.to_pylist()
    return [
        (
            row["event_ts"].timestamp(),
            "-=+"[row["sign"] + 1],
            row["object"],
            row["value"] or row["fields"],
        )
        for row in shown
    ]


@pytest.mark.parametrize("resolution", [0, 7, 15])
def test_a_place_is_in_the_cell_that_h3_says(resolution):
    rng = np.random.default_rng(resolution)
    x, y = rng.uniform(-180, 180, 300), np.degrees(np.arcsin(rng.uniform(-1, 1, 300)))
    x[:4], y[:4] = (180.0, -180.0, 0.0, 0.0), (0.0, 0.0, 90.0, -90.0)
    places = pa.table({"x": x, "y": y})
    (cells,) = evaluated([f"H3_CELL(x, y, {resolution})"], places)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    assert cells.to_pylist() == [
        h3.latlng_to_cell(lat, lon, resolution) for lon, lat in pairs
    ]


def test_what_is_no_place_is_in_no_cell():
    places = pa.table({"x": [None, np.nan, 1.0, 2.0], "y": [1.0, 1.0, 91.0, 2.0]})
    (cells,) = evaluated(["H3_CELL(x, y, 5)"], places)
    assert cells.to_pylist() == [None, None, None, h3.latlng_to_cell(2.0, 2.0, 5)]


def test_squares_of_a_plane_begin_at_zero_and_hold_their_low_sides():
    places = pa.table({"x": [0.0, 499.9, 500.0, -0.1], "y": [0.0, 0.0, 1000.0, -500.1]})
    (cells,) = evaluated(["GRID_CELL(x, y, 500)"], places)
    assert cells.to_pylist() == ["0:0", "0:0", "1:2", "-1:-2"]


@pytest.mark.parametrize("how", HOW)
def test_who_moves_to_another_cell_is_counted_there_and_no_more_here(how):
    here, there = (h3.latlng_to_cell(lat, lon, 7) for lon, lat in (TALLINN, TARTU))
    rows = [
        fix("a", 1, *TALLINN),
        fix("b", 1, *TALLINN),
        fix("a", 3, *TARTU),
        gone("b", 5),
        clock(9),
    ]
    text = "SELECT COUNT(*) FROM s GROUP BY h3_cell(7)"
    assert told(text, rows, geographic=True, **how) == [
        (1, "+", here, 2),
        (3, "-", here, 2),
        (3, "+", here, 1),
        (3, "+", there, 1),
        (5, "-", here, 1),
    ]


def test_cells_stand_among_columns_in_conditions_and_in_rows_of_queries():
    rows = [fix("a", 1, 120, 30), fix("b", 1, 80, 30), fix("a", 2, 220, 30)]
    text = "SELECT grid_cell(100) AS cell, grid_cell(x + 100, y, 100) AS right FROM s WHERE grid_cell(100) <> '0:0'"
    assert told(text, rows, geographic=False) == [
        (1, "+", "a", '{"cell":"1:0","right":"2:0"}'),
    ]
    outer = "SELECT COUNT(*) FROM (SELECT grid_cell(100) AS cell FROM s) r WHERE r.cell = '1:0'"
    values = [line[3] for line in told(outer, rows, geographic=False)]
    assert 1.0 in values


@pytest.mark.spec("B14", "P4")
def test_the_place_of_the_fix_is_meant_where_none_is_said():
    plan = plan_of(
        "SELECT kind, h3_cell(9) AS cell, COUNT(*) AS n FROM s GROUP BY kind, h3_cell(9)"
    )
    assert plan == plan_of(
        "SELECT kind, H3_CELL(s.x, s.y, 9) AS cell, COUNT(*) AS n FROM s GROUP BY kind, h3_cell(x, y, 9)"
    )
    assert "H3_CELL(x, y, 9) AS cell" in to_text(plan, "q")
    assert parse(to_text(plan, "q"))[0].plan == plan


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("h3_cell(16)", "resolution from 0 to 15"),
        ("h3_cell(x)", "resolution from 0 to 15"),
        ("h3_cell(1.5)", "resolution from 0 to 15"),
        ("h3_cell(x, 9)", "takes a size, or x, y and a size"),
        ("grid_cell(0)", "a number above 0"),
        ("grid_cell('500')", "a number above 0"),
        ("h3_cell()", "takes 1 to 3 arguments"),
    ],
)
def test_a_size_that_is_none_is_refused_at_its_place(call, message):
    with pytest.raises(TextError, match=message):
        plan_of(f"SELECT {call} AS cell FROM s")


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("crs", "wrong", "right"),
    [("planar", "h3_cell(9)", "GRID_CELL"), ("EPSG:4326", "grid_cell(5)", "H3_CELL")],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {} AS c FROM s",
        "SELECT COUNT(*) FROM s GROUP BY {}",
        "SELECT kind, {} AS c, COUNT(*) AS n FROM s GROUP BY kind, {}",
        "SELECT * FROM s WHERE {} = 'a'",
        "SELECT COUNT(*) FROM (SELECT {} AS c FROM s) r WHERE r.c = 'a'",
    ],
)
def test_cells_of_other_coordinates_are_refused(text, crs, wrong, right, tmp_path):
    columns = Columns(object="id", x="x", y="y")
    attributes = {"kind": "string"}
    stream = StreamSettings(
        name="s", format="csv", crs=crs, columns=columns, attributes=attributes
    )
    statements = parse(
        f"REGISTER QUERY q AS {text.format(*[wrong] * text.count('{}'))}"
    )
    with pytest.raises(TextError, match=rf"is not for coordinates .*{right}"):
        carry_out(Home(tmp_path), {"s": stream}, statements, owner="ada", now_us=7)
