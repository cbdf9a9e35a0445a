"""The order of selection and region that an engine runs is the one that pays, and that `explain` shows (SPEC G10)."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.local import LocalEngine
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from tests.kit.by_hand import fix, log, register
from tests.kit.effort import tries
from tests.kit.laws import run_steps, told, told_by_oracle
from tests.kit.oracle import Rules, judge
from tests.kit.strategies import Case, Segmentation

STREAMS = """[streams.taxis]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
columns = {object = "id", event_ts = "t", x = "x", y = "y"}
attributes = {state = "string"}
"""
WIDE = "REGISTER QUERY rare AS SELECT * FROM taxis WHERE state = 'free' INSIDE (0, 0, 90, 100)"
NARROW = "REGISTER QUERY narrow AS SELECT * FROM taxis WHERE state <> 'free' INSIDE (0, 0, 1, 100)"


def rows(first, count, *, free_every=500):
    """Taxis of which few are free, all over a square of 100 by 100."""
    rng = random.Random(first)
    states = (
        "free" if n % free_every == 0 else "busy" for n in range(first, first + count)
    )
    lines = [
        f"t{n % 400},{n},{rng.uniform(0, 100):.3f},{rng.uniform(0, 100):.3f},{state}"
        for n, state in enumerate(states, first)
    ]
    return "\n".join(["id,t,x,y,state", *lines, ""])


@pytest.fixture
def fairway(tmp_path, command_line):
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)

    def run(*words):
        return command_line(*words).stdout

    run.home = tmp_path
    return run


def probed(text):
    said = next(line for line in text.splitlines() if line.startswith("queries: "))
    return int(re.search(r"places looked up ([0-9,]+)", said)[1].replace(",", ""))


def replayed(fairway, text, *more):
    (fairway.home / "rows.csv").write_text(text)
    fairway("replay", "taxis", str(fairway.home / "rows.csv"), *more)


@pytest.mark.spec("G10")
def test_a_query_that_was_there_before_all_fixes_runs_in_the_order_that_explain_shows(
    fairway,
):
    fairway("query", "register", "--text", WIDE)
    assert "order     space_first: the selectivities are unknown" in fairway(
        "explain", "rare"
    )
    replayed(fairway, rows(0, 4000))
    assert (
        probed(fairway("run", "taxis", "--until-idle")) == 8
    )  # of 4,000: those that are free
    shown = fairway("explain", "rare")
    assert (
        "order     select_first: as the engine runs it, by 2,000 fixes (the selection keeps 0.2%, the region"
        in shown
    )
    below = next(line for line in shown.splitlines() if "inside box" in line)
    above = next(line for line in shown.splitlines() if "select state" in line)
    assert shown.index(below) < shown.index(above)


@pytest.mark.spec("G10")
def test_the_order_follows_the_fixes_of_each_query(fairway):
    for text in (WIDE, NARROW):
        fairway("query", "register", "--text", text)
    replayed(fairway, rows(0, 4000))
    assert probed(fairway("run", "taxis", "--until-idle")) == 4008
    assert "order     select_first: as the engine runs it" in fairway("explain", "rare")
    assert "order     space_first: as the engine runs it" in fairway(
        "explain", "narrow"
    )


@pytest.mark.spec("G10")
def test_the_order_is_chosen_anew_when_the_fixes_are_others(fairway):
    """At first all taxis are free; later none is."""
    fairway("query", "register", "--text", WIDE)
    home, stream = (
        Home(fairway.home / "home"),
        load_streams(fairway.home / "conf")["taxis"],
    )
    replayed(fairway, rows(0, 400, free_every=1), "--no-end")
    engine = LocalEngine(home, stream)
    assert engine.batch()
    assert not engine.batch()
    assert engine.totals.counters.probed == 400
    for start in range(1_000, 101_000, 10_000):
        replayed(fairway, rows(start, 10_000, free_every=10**6), "--no-end")
        assert engine.batch()
    assert 400 + 10_000 <= engine.totals.counters.probed < 60_000
    engine.close()
    assert "order     select_first: as the engine runs it" in fairway("explain", "rare")


@pytest.mark.spec("G10", "X1")
@tries(15)
@given(
    st.integers(0, 1 << 30),
    st.lists(st.integers(1, 60), max_size=8),
    st.sampled_from(["auto", "select_first"]),
)
def test_whatever_order_is_chosen_at_whatever_batch_the_changes_are_those_of_brute_force(
    seed, cuts, order
):
    rng = random.Random(seed)
    queries = [
        register(f"q{n}", Plan(stream="s", inside=box, where=where, order=order))
        for n, (where, box) in enumerate(
            [("load > 2", _box(3)), ("kind = 'taxi'", _box(8)), ("free", _box(20))]
        )
    ]
    fixes = [
        fix(
            rng.choice("abcde"),
            n,
            rng.randint(0, 9),
            rng.randint(0, 9),
            load=rng.choice([1.0, 3.0, None]),
            kind=rng.choice(["taxi", "bus"]),
            free=rng.random() < (0.9 if n < 30 else 0.05),
        )
        for n in range(70)
    ]
    case = Case(rows=tuple(log(*queries, *fixes)), layers={}, rules=Rules())
    cut = Segmentation(cuts=tuple(sorted({c + 3 for c in cuts})), batches=(1,) * 80)
    table, _, order_of = run_steps(case, cut, shards=2)
    assert told(table, order_of) == told_by_oracle(
        judge(case.rows, rules=case.rules).changes
    )


def _box(side):
    return Box(minx=0, miny=0, maxx=side, maxy=9)
