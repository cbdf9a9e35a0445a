"""Counts of nothing: told with a time of the stream, never with one before its first fix."""

import json
import random
from dataclasses import replace

import pytest

from st_common.query.text import parse
from st_common.regions.registry import Box
from tests.kit import oracle
from tests.kit.by_hand import drop, end, fix, lines, log, register
from tests.kit.laws import run_steps, told, told_by_oracle
from tests.kit.oracle import Rules
from tests.kit.strategies import Case, Segmentation

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
columns = {object = "id", event_ts = "t", x = "x", y = "y"}
"""
COUNTS = {
    "plain": "SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10)",
    "different": "SELECT COUNT(DISTINCT object) FROM cars INSIDE (0, 0, 10, 10)",
    "window": "SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10) WINDOW 10 s",
    "frame": "SELECT COUNT(*) FROM cars [RANGE 10 s] INSIDE (0, 0, 10, 10)",
    "moving": "SELECT COUNT(*) FROM cars INSIDE ('M', 'z', 5, 5)",
    "sum": "SELECT SUM(x) FROM cars INSIDE (0, 0, 10, 10)",
    "grouped": "SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10) GROUP BY object",
}
OUTSIDE, INSIDE, LATER = "a,100,50,5\n", "a,100,5,5\n", "b,105,60,5\n"


@pytest.fixture
def fairway(tmp_path, command_line):
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)

    def run(*words):
        return command_line(*words).stdout

    def played(rows):
        (tmp_path / "rows.csv").write_text(f"id,t,x,y\n{rows}")
        run("replay", "cars", str(tmp_path / "rows.csv"), "--no-end")
        run("run", "cars", "--until-idle")

    run.played = played
    return run


def plan_of(name):
    (statement,) = parse(f"REGISTER QUERY {name} AS {COUNTS[name]}")
    return statement.plan


def changes(fairway, name):
    lines = fairway("changes", name, "--format", "jsonl").splitlines()
    return [
        (row["event_ts"], row["sign"], row["value"]) for row in map(json.loads, lines)
    ]


@pytest.mark.spec("G9")
@pytest.mark.parametrize("name", COUNTS)
def test_nothing_is_told_before_the_stream_has_a_time(fairway, name):
    fairway("query", "register", "--text", f"REGISTER QUERY {name} AS {COUNTS[name]}")
    fairway("run", "cars", "--until-idle")
    assert changes(fairway, name) == []
    assert "1970" not in fairway("answer", name)
    assert fairway("verify", name).endswith(": holds\n")


@pytest.mark.spec("G9")
@pytest.mark.parametrize("name", ["plain", "different", "window", "frame", "moving"])
def test_a_count_of_nothing_is_told_at_the_first_tick(fairway, name):
    fairway("query", "register", "--text", f"REGISTER QUERY {name} AS {COUNTS[name]}")
    fairway.played(OUTSIDE)
    assert changes(fairway, name) == []  # the clock has not passed the first tick
    assert fairway("verify", name).endswith(": holds\n")
    fairway.played(LATER)
    assert changes(fairway, name) == [("1970-01-01T00:01:40Z", 1, 0.0)]
    assert fairway("verify", name).endswith(": holds\n")
    fairway.played("a,110,50,5\na,120,50,5\n")
    assert (
        len(changes(fairway, name)) == 1
    )  # and not again, also by an engine that was started anew


@pytest.mark.spec("G9")
@pytest.mark.parametrize("name", ["plain", "different", "window", "frame"])
def test_a_count_of_something_at_the_first_tick_is_told_alone(fairway, name):
    fairway("query", "register", "--text", f"REGISTER QUERY {name} AS {COUNTS[name]}")
    fairway.played(INSIDE + LATER)
    assert changes(fairway, name) == [("1970-01-01T00:01:40Z", 1, 1.0)]
    assert fairway("verify", name).endswith(": holds\n")


@pytest.mark.spec("G9", "X1")
@pytest.mark.parametrize("seed", range(30))
def test_counts_registered_before_all_fixes_follow_brute_force(seed):
    rng = random.Random(seed)
    at_first = [register(name, plan_of(name)) for name in COUNTS if rng.random() < 0.7]
    moves = [
        fix(
            rng.choice("abz"), 100 + number // 2, rng.randint(0, 20), rng.randint(0, 12)
        )
        for number in range(20)
    ]
    late = register("late", plan_of("plain"))
    is_there = any(row.row["query"] == "plain" for row in at_first)
    more = (
        [register("plain", plan_of("different"), op="replace", version=2)]
        if is_there and seed % 3 == 0
        else []
    )
    more += [drop("plain")] if is_there and seed % 5 == 0 else []
    where = rng.randint(0, len(moves))
    rows = tuple(log(*at_first, *more, *moves[:where], late, *moves[where:], end()))
    case = Case(
        rows=rows,
        layers={},
        rules=Rules(lateness_us=rng.choice([0, 2_000_000]), tick_us=1_000_000),
    )
    cuts = tuple(sorted(rng.sample(range(1, len(rows)), 6)))
    found, _, order = run_steps(
        case, Segmentation(cuts=cuts, batches=(1, 2, 1, 3)), shards=rng.choice([1, 2])
    )
    assert told(found, order) == told_by_oracle(
        oracle.judge(rows, rules=case.rules).changes
    )


@pytest.mark.spec("G9", "W4")
def test_a_window_whose_slide_begins_before_the_first_fix_tells_nothing_of_then():
    text = "SELECT COUNT(DISTINCT object) FROM cars [RANGE 10 s, SLIDE 3.5 s]"
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    rows = log(register("q", statement.plan), fix("b", 980.5, 5.5))
    case = Case(rows=tuple(rows), layers={}, rules=Rules())
    changes, _, order = run_steps(case, Segmentation(cuts=(1,), batches=()))
    assert told(changes, order) == []


def brute_and_engine(rows, rules):
    """What brute force tells of a log, as lines, after the step told the same, in shards and from bytes."""
    expected = oracle.judge(rows, rules=rules).changes
    case = Case(rows=tuple(rows), layers={}, rules=rules)
    for shards in (1, 2):
        cut = Segmentation(cuts=tuple(range(1, len(rows))), batches=())
        changes, _, order = run_steps(case, cut, shards=shards, through_bytes=True)
        assert told(changes, order) == told_by_oracle(expected)
    return lines(expected)


def follows(text, region):
    """A query, and the row by which it goes over to another region."""
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    plan = replace(statement.plan, inside=region)
    return register("q", statement.plan), register("q", plan, op="follow")


@pytest.mark.spec("G9", "X4")
@pytest.mark.parametrize(
    "text",
    [
        COUNTS["plain"],
        COUNTS["frame"],
        f"SELECT COUNT(*) FROM ({COUNTS['grouped']}) r",
        f"SELECT COUNT(*) FROM ({COUNTS['frame']} GROUP BY object) r",
    ],
)
def test_an_area_that_changes_before_the_first_tick_tells_a_count_of_nothing(text):
    query, follow = follows(text, Box(minx=20, miny=0, maxx=30, maxy=10))
    rows = log(query, fix("a", 100, 50, 5), follow, fix("a", 105, 50, 5), end())
    rules = Rules(tick_us=1_000_000)
    assert brute_and_engine(rows, rules) == ["2 @100 q +* area =0"]


@pytest.mark.spec("W2", "X4")
def test_an_area_that_changes_tells_no_row_whose_tick_is_still_to_come():
    text = (
        "SELECT SUM(x) FROM cars [RANGE BY (0, 0, 9, 9) RATTR SPACE]"
        " INSIDE (20, 20, 30, 30)"
    )
    query, follow = follows(text, Box(minx=0, miny=0, maxx=9, maxy=9))
    rows = log(query, fix("a", 100, 5, 5), fix("a", 103.5, 6, 5), follow, end())
    assert brute_and_engine(rows, Rules(tick_us=2_000_000)) == [
        "3 @103.5 q +* area =5",
        "4 @103.5 q -* value =5",
        "4 @103.5 q +* value =11",
    ]
