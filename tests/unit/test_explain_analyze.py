"""EXPLAIN ANALYZE runs a query over what is archived, and says what really went through its operators (SPEC G10)."""

import random
import re

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.ran_home import ran_home

CONF = """
[streams.taxis]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
tick_s = 10
lateness_s = 5
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { state = "string" }
"""
BOX = "INSIDE (0, 0, 30, 30)"
FREE = f"SELECT * FROM taxis WHERE state = 'free' {BOX}"


def _rows():
    """Readings of 20 taxis, none twice, of which a third are free."""
    rng = random.Random(7)
    for n in range(600):
        state = "free" if n % 3 == 0 else "busy"
        yield f"t{n % 20}", n, rng.randint(0, 99), rng.randint(0, 99), state


ROWS = [*_rows()]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    lines = ["id,t,x,y,state", *(",".join(map(str, row)) for row in ROWS), ""]
    return ran_home(tmp_path_factory.mktemp("analyze"), CONF, "taxis", "\n".join(lines))


def analyzed(home, text):
    done = CliRunner().invoke(
        app, ["--home", str(home.root), "explain", "--analyze", "--text", text]
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def flow(shown, operator):
    """What went through an operator: in and out as text."""
    (line,) = (one for one in shown.splitlines() if f" {operator} " in one)
    return re.split(r"\bactual ", line)[1]


def inside(row):
    return row[2] <= 30 and row[3] <= 30


def is_free(row):
    return row[4] == "free"


def signs(rows, holds):
    """How often an object came in and left, by its readings one after the other."""
    came = went = 0
    before = {}
    for row in rows:
        now = holds(row)
        came += now and not before.get(row[0], False)
        went += not now and before.get(row[0], False)
        before[row[0]] = now
    return came, went


@pytest.mark.spec("G10")
@pytest.mark.parametrize(
    ("order", "below", "above", "lower"),
    [
        ("space_first", "inside", "select", inside),
        ("select_first", "select", "inside", is_free),
    ],
)
def test_what_went_through_each_operator_is_what_the_readings_say(
    home, order, below, above, lower
):
    shown = analyzed(home, f"{FREE} WITH (plan = '{order}')")
    through = sum(map(lower, ROWS))
    both = sum(inside(row) and is_free(row) for row in ROWS)
    assert flow(shown, "fixes") == "600 in, 600 out"
    assert flow(shown, below) == f"600 in, {through} out"
    assert flow(shown, above) == f"{through} in, {both} out"
    came, went = signs(ROWS, lambda row: inside(row) and is_free(row))
    assert f"told      {came} +, {went} -" in shown
    assert flow(shown, "changes") == f"{came + went} out"


@pytest.mark.spec("G10")
def test_what_is_not_counted_is_said(home):
    shown = analyzed(home, f"SELECT COUNT(*) FROM taxis {BOX}")
    assert flow(shown, "aggregate") == "not counted"
    ticks = int(re.search(r"; (\d+) ticks, \d+ objects and pairs", shown)[1])
    assert ticks == 60


@pytest.mark.spec("G10", "P8")
def test_the_operator_says_how_many_queries_it_judges_together(home):
    run = lambda *words: CliRunner().invoke(app, ["--home", str(home.root), *words])
    texts = [
        *(
            f"REGISTER QUERY box{n} AS SELECT * FROM taxis INSIDE ({n}, 0, 50, 50)"
            for n in range(3)
        ),
        "REGISTER QUERY near AS SELECT * FROM taxis INSIDE ('M', 't1', 20)",
    ]
    assert run("query", "register", "--text", "; ".join(texts)).exit_code == 0
    asked = "EXPLAIN ANALYZE box1; EXPLAIN ANALYZE near; EXPLAIN box1"
    done = run("query", "register", "--text", asked)
    assert done.exit_code == 0, done.output
    shared = [line for line in done.stdout.splitlines() if line.startswith("shared")]
    assert shared == [
        "shared    one operator judges 3 queries of this stream: regions and layers that stand still, fix by fix",
        "shared    one operator judges 1 query of this stream: circles that go with objects",
    ]
    assert run("query", "drop", "near").exit_code == 0
    # One that is not registered comes on top of the three.
    assert "judges 4 queries" in analyzed(home, FREE)


def test_analyze_is_a_name_where_nothing_follows_it(home):
    run = lambda text: CliRunner().invoke(
        app, ["--home", str(home.root), "query", "register", "--text", text]
    )
    done = run(f"REGISTER QUERY analyze AS {FREE}; EXPLAIN analyze")
    assert done.exit_code == 0, done.output
    assert "shared" not in done.stdout
    assert "shared " in run("EXPLAIN ANALYZE analyze").stdout
    assert run("DROP QUERY analyze").exit_code == 0


def test_a_stream_that_never_ran_has_nothing_to_count(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    done = CliRunner().invoke(
        app, ["--home", str(tmp_path), "explain", "--analyze", "--text", FREE]
    )
    assert done.exit_code == 2
    assert "stream 'taxis' never ran" in done.output
