"""`fairway explain` and what it says: operators from the fixes up to the changes, order and estimates."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.estimates import estimates_of
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.query.explain import Estimates, Explanation, explain, lines
from st_common.query.text import parse

BOX = "INSIDE (0, 0, 10, 10)"
STREAM = StreamSettings(
    name="taxis",
    format="csv",
    columns=Columns(object="id", x="x", y="y"),
    crs="planar",
    tick_s=5.0,
    attributes={"state": "string"},
)


def explained(text: str, estimates: Estimates | None = None) -> Explanation:
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    assert statement.plan is not None
    return explain(statement.plan, "q", tick_s=5.0, estimates=estimates)


def operators(text: str, estimates: Estimates | None = None) -> list[str]:
    return [step.operator for step in explained(text, estimates).steps]


@pytest.mark.spec("G10")
def test_the_order_follows_the_estimates_and_both_orders_let_the_same_out():
    text = f"SELECT * FROM taxis WHERE state = 'free' {BOX}"
    small, large = (
        Estimates(objects=1000, where=0.05, space=space) for space in (0.02, 0.64)
    )
    assert operators(text, small) == ["fixes", "inside", "select", "changes"]
    assert operators(text, large) == ["fixes", "select", "inside", "changes"]
    flows = [
        [
            (step.tuples_in, step.tuples_out)
            for step in explained(text, known).steps[1:3]
        ]
        for known in (small, large)
    ]
    assert flows == [[(1000, 20), (20, 1)], [(1000, 50), (50, 32)]]


@pytest.mark.spec("G10")
def test_a_query_may_say_the_order_itself():
    text = (
        f"SELECT * FROM taxis WHERE state = 'free' {BOX} WITH (plan = 'select_first')"
    )
    found = explained(text, Estimates(objects=1000, where=0.9, space=0.01))
    assert (found.order, found.why) == ("select_first", "as the query says")
    assert [step.operator for step in found.steps] == [
        "fixes",
        "select",
        "inside",
        "changes",
    ]


@pytest.mark.parametrize("clauses", ["INSIDE ('M', 'a', 5)", f"{BOX} KNN (3, 1, 1)"])
def test_what_moves_and_what_is_near_look_at_selected_objects_alone(clauses: str):
    found = explained(
        f"SELECT * FROM taxis WHERE state = 'free' {clauses} WITH (plan = 'space_first')"
    )
    assert found.order == "select_first"
    assert [step.operator for step in found.steps][1:3] == ["select", "inside"]


def test_the_region_stands_below_a_join():
    text = f"SELECT * FROM taxis JOIN parks ON ST_Intersects(taxis, parks) WHERE state = 'free' {BOX}"
    assert (
        explained(text, Estimates(objects=10, where=0.1, space=1.0)).order
        == "space_first"
    )


def test_without_estimates_nothing_is_claimed():
    found = explained(f"SELECT * FROM taxis WHERE state = 'free' {BOX}")
    assert (found.order, found.why) == ("space_first", "the selectivities are unknown")
    assert all(
        step.tuples_in is None and step.tuples_out is None for step in found.steps
    )


@pytest.mark.parametrize(
    ("text", "expected", "judged", "kind", "focals"),
    [
        ("SELECT * FROM taxis", ["fixes", "changes"], "fix by fix", "all objects", ()),
        (
            f"SELECT * FROM taxis JOIN parks p ON ST_Intersects(taxis, p) WHERE state = 'x' AND p.kind = 'y' {BOX}",
            ["fixes", "inside", "select", "join", "changes"],
            "fix by fix",
            "layer join inside of a region",
            (),
        ),
        (
            "SELECT * FROM taxis INSIDE ('M', 't1', 2, 2)",
            ["fixes", "inside", "changes"],
            "ticks",
            "moving box",
            ("t1",),
        ),
        (
            f"SELECT * FROM taxis KNN ('M', 3, 't1') {BOX}",
            ["fixes", "inside", "knn", "changes"],
            "ticks",
            "k nearest among those inside",
            ("t1",),
        ),
        (
            "SELECT * FROM taxis GROUP KNN (1, MAX, ('M', 'a'), (1, 2), ('M', 'b'))",
            ["fixes", "group knn", "changes"],
            "ticks",
            "k nearest to a group",
            ("a", "b"),
        ),
        (
            "SELECT * FROM taxis REVERSE KNN (1, 2)",
            ["fixes", "reverse knn", "changes"],
            "ticks",
            "reverse nearest",
            (),
        ),
        (
            "SELECT * FROM taxis a JOIN taxis b ON ST_DWithin(a, b, 1 km)",
            ["fixes", "pairs", "changes"],
            "ticks",
            "pairs of objects",
            (),
        ),
        (
            f"SELECT COUNT(object) FROM taxis {BOX} WINDOW 1 hour",
            ["fixes", "inside", "window", "aggregate", "changes"],
            "ticks",
            "box",
            (),
        ),
        (
            "SELECT DISTINCT state FROM taxis",
            ["fixes", "distinct", "changes"],
            "ticks",
            "all objects",
            (),
        ),
        (
            f"SELECT state FROM taxis {BOX} EMIT CHANGES WITH VALID UNTIL",
            ["fixes", "inside", "columns", "valid until", "changes"],
            "ticks",
            "box",
            (),
        ),
    ],
)
def test_every_clause_is_an_operator_from_the_fixes_up(
    text: str, expected: list[str], judged: str, kind: str, focals: tuple[str, ...]
):
    found = explained(text)
    assert [step.operator for step in found.steps] == expected
    assert judged in found.judged
    assert (found.kind, found.focals) == (kind, focals)
    assert [found.steps[0].stage, found.steps[-1].stage] == ["LOCATE", "SETTLE"]
    assert {step.stage for step in found.steps[1:-1]} <= {"EVALUATE"}


def test_the_tree_has_the_changes_at_the_top():
    text = f"SELECT * FROM taxis WHERE state = 'free' {BOX}"
    shown = lines(explained(text, Estimates(objects=1000, where=0.5, space=0.02)))
    assert (
        shown[4]
        == "order     space_first: cheaper by the estimates (the selection keeps 50.0%, the region 2.0%)"
    )
    assert shown[3] == "rows      one for each object"
    assert shown[6:] == [
        "SETTLE    changes of all shards in one order: + and -",
        "EVALUATE    select state = 'free'                           20 in, 10 out",
        "EVALUATE      inside box 0 0, 10 10                         1,000 in, 20 out",
        "LOCATE          fixes of taxis: every fix that is not late  1,000 objects",
    ]


def test_what_is_selected_is_told_with_types_and_units():
    (statement,) = parse("REGISTER QUERY q AS SELECT object, speed_mps FROM taxis")
    assert statement.plan is not None
    shown = lines(explain(statement.plan, "", stream=STREAM))
    assert shown[3:5] == [
        "rows      one for each object",
        "columns   object (text), speed_mps (number in m/s, or null)",
    ]
    (statement,) = parse(
        "REGISTER QUERY q AS SELECT state, COUNT(*) FROM taxis GROUP BY state"
    )
    assert statement.plan is not None
    shown = lines(explain(statement.plan, "", stream=STREAM))
    assert shown[3:5] == [
        "rows      one for each state",
        "columns   state (text, or null), count (number)",
    ]


def stored(home: Home, fixes: list[tuple[str, int, float, float, bool, str]]) -> None:
    """Positions as the archive writes them: object, second, x, y, gone, state."""
    contract = load_contract("positions")
    base = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [
        {
            "event_date": base.date(),
            "region_id": "0",
            "segment": number,
            "row": 0,
            "event_ts": base.replace(second=second),
            "x": x,
            "y": y,
            "object": name,
            "gone": gone,
            "state": state,
        }
        for number, (name, second, x, y, gone, state) in enumerate(fixes)
    ]
    schema = contract.arrow_schema({"state": "string"})
    tables.append(
        home.table("positions", "taxis"),
        pa.Table.from_pylist(rows, schema=schema),
        contract,
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    stored(
        home,
        [
            ("a", 0, 0, 0, False, "free"),
            ("a", 2, 6, 8, False, "busy"),
            ("b", 0, 50, 50, False, "free"),
            ("c", 0, 5, 5, False, "free"),
            ("d", 0, 5, 5, False, "free"),
            ("d", 1, 5, 5, True, "free"),
            ("e", 0, 99, 99, False, "busy"),
        ],
    )
    return home


@pytest.mark.spec("G10")
@pytest.mark.parametrize(
    ("clauses", "where", "space"),
    [
        ("", None, None),
        ("WHERE state = 'free'", 0.5, None),
        (BOX, None, 0.5),
        ("WHERE speed_mps >= 5 AND elapsed_s = 2", 0.25, None),
        ("WHERE elapsed_s IS NULL INSIDE CIRCLE (5, 5, 1)", 0.75, 0.25),
        ("INSIDE ('M', 'c', 6, 6)", None, 0.5),
        ("INSIDE ('M', 'a', 3.2)", None, 0.5),
        ("INSIDE ('M', 'd', 100, 100)", None, None),
        ("INSIDE 'POLYGON((0 0, 60 0, 60 60, 0 60, 0 0))'", None, 0.75),
    ],
)
def test_estimates_are_shares_of_the_objects_that_are_there(
    home: Home, clauses: str, where: float | None, space: float | None
):
    plan = parse(f"REGISTER QUERY q AS SELECT * FROM taxis {clauses}")[0].plan
    assert plan is not None
    assert estimates_of(home, STREAM, plan) == Estimates(
        objects=4, where=where, space=space
    )


def test_without_positions_nothing_is_known(tmp_path: Path):
    plan = parse("REGISTER QUERY q AS SELECT * FROM taxis")[0].plan
    assert plan is not None
    assert estimates_of(Home(tmp_path), STREAM, plan) == Estimates()


CONF = """
[streams.taxis]
format = "csv"
crs = "planar"
columns = { object = "id", x = "lon", y = "lat" }
attributes = { state = "string" }
"""


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch):
    (home.root / "conf").mkdir()
    (home.root / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    return lambda *args: CliRunner().invoke(app, args, prog_name="fairway")


@pytest.mark.spec("G10")
def test_the_command_explains_a_registered_query_and_a_text(run):
    text = f"REGISTER QUERY free AS SELECT * FROM taxis WHERE state = 'free' {BOX}"
    assert run("query", "register", "--text", text).exit_code == 0
    by_name, by_text = run("explain", "free"), run("explain", "--text", text)
    assert by_name.exit_code == 0, by_name.output
    assert by_name.stdout == by_text.stdout
    assert "4 objects" in by_name.stdout
    assert "the selection keeps 50.0%, the region 50.0%" in by_name.stdout


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("explain", "nobody"), "unknown query 'nobody'"),
        (("explain",), "--text"),
        (
            (
                "explain",
                "--text",
                "REGISTER QUERY q AS SELECT * FROM taxis WHERE stat = 'x'",
            ),
            "did you mean state?",
        ),
        (
            ("explain", "--text", "REGISTER QUERY q AS SELECT * FROM taxi"),
            "did you mean taxis?",
        ),
    ],
)
def test_the_command_says_what_it_cannot_explain(run, args: tuple[str, ...], says: str):
    found = run(*args)
    assert found.exit_code == 2
    assert says in found.output


def steps_of(select: str) -> tuple[str, list[tuple[str, str]]]:
    """The kind of a SELECT, and its operators with their details from the fixes up."""
    (statement,) = parse(f"REGISTER QUERY q AS {select}")
    assert statement.plan is not None
    found = explain(statement.plan, "q")
    return found.kind, [(step.operator, step.detail) for step in found.steps]


def test_windows_in_brackets_come_before_the_condition_and_the_stream_last():
    kind, steps = steps_of(
        "SELECT RSTREAM(AVGSPD(*)) FROM ships [RANGE BY 50 km RATTR SPACE, SLIDE BY 10 min SATTR TIME] [ROWS 100]"
        " [RANGE BY (0, 0, 1, 1) RATTR SPACE] WHERE kind = 'ferry' INSIDE CIRCLE (1, 2, 3 km)"
        " WITH (windows = 'full', min_step = '10 m')"
    )
    assert (
        kind
        == "window over way and fixes, window of a region, of objects that count by: circle"
    )
    assert steps == [
        ("fixes", "of ships: every fix that is not late"),
        (
            "track",
            "the way of every object since its first fix, steps below 10 m count nothing",
        ),
        (
            "window",
            "the last 50000 m of its way, moving on every 600 s of time, once all of it lies behind",
        ),
        ("window", "the last 100 fixes, once all of it lies behind"),
        ("window", "fixes in: box 0 0, 1 1"),
        ("restrict", "fixes with kind = 'ferry'"),
        ("inside", "circle of 3000 m around 1 2"),
        (
            "average speed",
            "way over time between the fixes of each object, in metres per second",
        ),
        ("changes", "of all shards in one order: + and -"),
        ("rstream", "what stays is told as well, whenever something moved: 0"),
    ]


def test_a_query_about_rows_has_the_steps_of_the_query_below_its_own():
    _, steps = steps_of(
        "SELECT COUNT(*) FROM (SELECT speed FROM taxis WHERE state = 'free'"
        " INSIDE (0, 0, 1, 1)) r WHERE r.speed > 30"
    )
    assert steps == [
        ("fixes", "of taxis: the last fix of every object"),
        ("inside", "box 0 0, 1 1"),
        ("select", "state = 'free'"),
        ("columns", "speed"),
        ("rows", "of the query below, as they are at one time"),
        ("select", "speed > 30"),
        ("aggregate", "count members"),
        ("changes", "of all shards in one order: + and -"),
    ]


def test_transformations_come_in_their_order_and_the_comparison_after_them():
    kind, steps = steps_of(
        "SELECT * FROM ships INSIDE (0, 0, 9, 9) COMPARE WITH NOT (1, 1, 2, 2)"
        " USING enlarge(50 m), key('a'), box(0, 0, 1, 1), filter('wkt', 'POINT(0 0)'), enlarge_factor(0.5)"
    )
    assert kind == "box, then negative comparison with a box"
    assert [
        detail for operator, detail in steps if operator in ("transform", "compare")
    ] == [
        "boxes grow by 50 m",
        "only a",
        "only what meets the box 0 0, 1 1",
        "only what the filter wkt lets through: POINT(0 0)",
        "boxes grow by the factor 0.5",
        "what is left must not meet the box 1 1, 2 2",
    ]
    assert steps[-1] == ("changes", "of all shards in one order: + and -")
