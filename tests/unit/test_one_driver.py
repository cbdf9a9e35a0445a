"""Faults that are planted into the one driver of history, or into the reference, and who sees them.

Verify and the oracle of the laws ask the same driver, so a fault of it must show beside what shares nothing with it:
the engine, cases whose answer was found on paper, and recordings of what was told.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_common.checks import answers, history, visits
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.reference import (
    aggregate,
    fence,
    incident,
    members,
    outer,
    sliding,
)
from tests.kit import oracle, place_fig1, replays
from tests.kit.archived import run_through
from tests.kit.feeding import stream_with
from tests.kit.laws import run_course, told, told_by_oracle
from tests.kit.log_writer import bare_log
from tests.kit.strategies import Course, Segmentation, case_of

ALONE = Course(
    cut=Segmentation(cuts=(), batches=()),
    shards=1,
    margin=0.0,
    refills=True,
    restarts=frozenset(),
)
MOST = 8
"""So many random cases of a kind are looked at for one that shows a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is put in the place of something: `name` of `owner`, from what was there."""

    owner: Any
    name: str
    then: Callable[[Any], Any]

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the test is over."""
        monkeypatch.setattr(
            self.owner, self.name, self.then(getattr(self.owner, self.name))
        )


def _always(value):
    return lambda _: lambda *_args, **_named: value


def _all_count(real):
    return lambda *args, **named: np.ones_like(real(*args, **named))


def _a_tick_later(real):
    def later(found, clock, times):
        tick, due = real(found, clock, times)
        return tick + times.tick_us, due

    return later


def _without_the_last(real):
    def fewer(plan, fixes, features):
        found = real(plan, fixes, features)
        rows = slice(0, max(len(found.row) - 1, 0))
        return replace(
            found,
            row=found.row[rows],
            partner=found.partner[rows],
            sure=found.sure[rows],
        )

    return fewer


def _one_more(real):
    def more(function, values):
        value = real(function, values)
        return value + 1 if value is not None and function == "count" else value

    return more


FAULTS = [
    pytest.param(
        Fault(
            members, "inside", lambda real: lambda region, fixes: ~real(region, fixes)
        ),
        "fixes",
        id="inside is outside",
    ),
    pytest.param(
        Fault(answers.reference, "members", _without_the_last),
        "neighbours",
        id="a member is left out",
    ),
    pytest.param(
        Fault(answers, "counting", _all_count), "windows", id="windows have no end"
    ),
    pytest.param(
        Fault(aggregate, "value_of", _one_more),
        "counting",
        id="counts are one too high",
    ),
    pytest.param(
        Fault(sliding, "in_window", _all_count), "frames", id="frames hold all rows"
    ),
    pytest.param(
        Fault(answers, "outlives", lambda real: lambda frame: not real(frame)),
        "frames",
        id="rows go with their objects, or stay",
    ),
    pytest.param(
        Fault(fence.Machine, "dwells_us", _always(None)), "fences", id="nobody dwells"
    ),
    pytest.param(
        Fault(fence, "_is_enough", lambda _: lambda row_us, _debounce: len(row_us) > 0),
        "fences",
        id="a single fix is enough for a fence",
    ),
    pytest.param(
        Fault(visits, "sides", lambda real: lambda plan, met: real(plan, met)[::-1]),
        "moving fences",
        id="near is inside of a fence that moves",
    ),
    pytest.param(
        Fault(incident.Stretch, "_is_long_enough", _always(True)),
        "incidents",
        id="incidents begin at once",
    ),
    pytest.param(
        Fault(outer, "chosen", lambda _: lambda _outer, rows, _evaluate: set(rows)),
        "nested",
        id="all rows are chosen",
    ),
    pytest.param(
        Fault(history, "_ticks", _a_tick_later), "moving", id="ticks are one too late"
    ),
    pytest.param(
        Fault(
            history, "_with_expiries", lambda _: lambda used, _clock, _silence_us: used
        ),
        "fixes",
        id="nobody is silent for too long",
    ),
    pytest.param(
        Fault(history.Events, "alive", lambda _: lambda self, rows: self.last(rows)),
        "counting",
        id="the dead are counted",
    ),
]


@cache
def stepped(kind, seed):
    """A random case, and what the step tells of it."""
    case = case_of(seed, kind=kind)
    changes, _, order = run_course(case, ALONE)
    return case, told(changes, order)


def differs(kind, seed):
    """Whether the driver answers a random case in another way than the step."""
    case, expected = stepped(kind, seed)
    try:
        brute = told_by_oracle(oracle.changes(case.rows, rules=case.rules))
    except (KeyError, IndexError):
        return True  # a history that does not add up
    return brute != expected


@pytest.mark.parametrize(("fault", "kind"), FAULTS)
def test_a_fault_in_the_driver_shows_beside_the_step(monkeypatch, fault, kind):
    seeds = range(MOST)
    assert not any(differs(kind, seed) for seed in seeds)
    fault.plant(monkeypatch)
    assert any(differs(kind, seed) for seed in seeds)


@pytest.mark.parametrize(
    "fault", [FAULTS[0].values[0], FAULTS[1].values[0]], ids=["inside", "a member"]
)
def test_a_fault_in_the_driver_shows_beside_a_case_of_a_paper(monkeypatch, fault):
    def answer(upto):
        rows = place_fig1.rows()
        return {pair[:2] for pair in oracle.answer(rows, upto=upto)}

    upto = place_fig1.first_of_t1() - 1
    assert answer(upto) == place_fig1.ANSWER_T0
    assert answer(None) == place_fig1.ANSWER_T1
    fault.plant(monkeypatch)
    assert answer(upto) != place_fig1.ANSWER_T0
    assert answer(None) != place_fig1.ANSWER_T1


REPLAYS = Path(__file__).parents[1] / "replays"


@pytest.mark.parametrize("name", ["fixes-plain", "windows-plain"])
def test_recordings_do_not_depend_on_the_driver(monkeypatch, tmp_path, name):
    for fault in (one.values[0] for one in FAULTS):
        fault.plant(monkeypatch)
    steps = replays.read_recording(REPLAYS / f"{name}.jsonl")
    told_then = json.loads((REPLAYS / "told.json").read_text())
    assert replays.replay(steps, tmp_path / "home") == told_then[name]


QUERIES = """
REGISTER QUERY now AS SELECT * FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY gate AS SELECT * FROM ships INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT, DWELL 3 s;
REGISTER QUERY high AS SELECT * FROM ships WHERE x > 6 FOR 2 s;
REGISTER QUERY many AS SELECT COUNT(*) FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY above AS SELECT * FROM (SELECT SUM(x) FROM ships GROUP BY object) WHERE value > 4;
"""


@pytest.mark.parametrize(
    ("place", "query"),
    [(0, "now"), (3, "many"), (6, "gate"), (9, "high"), (10, "above")],
)
def test_a_fault_in_the_driver_is_seen_by_verify_where_all_was_right(
    tmp_path, monkeypatch, place, query
):
    home, stream = Home(tmp_path), stream_with({"kind": "stdin"})
    register(home, {"ships": stream}, parse(QUERIES), owner="ada")
    log = bare_log(home.log("ships"))
    for second, x in ((0, 30), (2, 7), (3, 7), (8, 3), (9, 3)):
        log.append(f"id,t,x,y\na,{1_700_000_000 + second},{x},5".encode(), arrival_us=0)
    run_through(home, stream)
    assert all(one.holds for one in verify(home, stream))
    FAULTS[place].values[0].plant(monkeypatch)
    assert query in {one.query for one in verify(home, stream) if not one.holds}
