"""Time while a feed is quiet: what is wanted is complete; a stream that pauses ends with what holds at wall time."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.controls.rows import Clock
from st_common.controls.writing import to_bytes
from st_common.engine import timekeeper
from st_common.engine.local import LocalEngine
from st_common.operators.events.packet import control_packet
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.wanted import wanted_us
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.position import position_of
from tests.kit import laws, oracle
from tests.kit.control_rows import control
from tests.kit.effort import tries
from tests.kit.laws import told, told_by_oracle
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Control, Fix
from tests.kit.random_plans import KINDS
from tests.kit.strategies import START_US, cases, segmentations

SECOND_US = 1_000_000


def highest(rows):
    """The largest time that the rows of a log name."""
    return max(
        (
            row.event_us if isinstance(row, Fix) else row.row.get("ts", START_US)
            for row in rows
        ),
        default=START_US,
    )


@st.composite
def pauses(draw, *, layers=None):
    """A stream that pauses at any place, how it is cut, how long it pauses, and in how many shards it is run."""
    case = draw(
        cases(
            kind=draw(st.sampled_from((None, *KINDS))),
            layers=draw(st.booleans()) if layers is None else layers,
        )
    )
    rows = case.rows[: draw(st.integers(1, len(case.rows)))]
    rows = tuple(row for row in rows if isinstance(row, Fix) or row.row["op"] != "end")
    case = replace(case, rows=rows)
    return (
        case,
        draw(segmentations(len(rows))),
        draw(st.integers(1, 60)),
        draw(st.integers(1, 2)),
    )


class Shards:
    """The step over a case, shard by shard, with clock rows after it."""

    def __init__(self, case, cut, shards):
        self.case, self.rows = case, list(case.rows)
        self._settings = [
            laws.settings_of(case.rules, shard=shard, shards=shards)
            for shard in range(shards)
        ]
        self._states, self._layer_of = [State()] * shards, laws._layer_of(case)
        segments, self.order = laws.packets_of(case, cut, shards)
        self.changes = [self._step(packets) for packets in segments]
        self._next = len(segments)

    def _step(self, packets):
        done = [
            step(state, [packet], of, self._layer_of)
            for state, packet, of in zip(
                self._states, packets, self._settings, strict=True
            )
        ]
        self._states = [one.state for one in done]
        return settled([one.changes for one in done])

    def wanted(self):
        found = [
            wanted_us(state, of)
            for state, of in zip(self._states, self._settings, strict=True)
        ]
        return min((us for us in found if us is not None), default=None)

    def clock(self, ts):
        row = Clock(ts_us=ts)
        packet = control_packet(self._next, to_bytes(row))
        self.order[position_of(self._next, 0)] = len(self.rows)
        self.rows.append(control(row, len(self.rows)))
        self._next += 1
        self.changes.append(self._step([packet] * len(self._states)))
        return self.changes[-1]


@pytest.mark.spec("S1", "G7")
@tries(60)
@given(pauses())
def test_who_brings_about_what_is_wanted_misses_nothing_that_time_changes(pause):
    case, cut, pause_s, shards = pause
    run, until_us = Shards(case, cut, shards), highest(case.rows) + pause_s * SECOND_US
    lateness_us = case.rules.lateness_us
    before = None
    while (wanted := run.wanted()) is not None and wanted < until_us - lateness_us:
        assert (
            before is None or wanted > before
        )  # the agenda goes on: every time comes once
        run.clock(wanted + lateness_us + 1)
        before = wanted
    seen = any(isinstance(row, Fix) or row.row["op"] == "clock" for row in case.rows)
    assert not seen or not len(run.clock(until_us))
    expected = oracle.changes(run.rows, layers=case.layers, rules=case.rules)
    assert told(pa.concat_tables(run.changes), run.order) == told_by_oracle(expected)
    at_wall = control(Clock(ts_us=until_us), len(case.rows))
    brute = oracle.answer([*case.rows, at_wall], layers=case.layers, rules=case.rules)
    assert not seen or oracle.agree(oracle.fold(expected), brute)


ARRIVAL_US = (
    START_US + 4_000 * SECOND_US
)  # when the last of a case's fixes came: all delays are shown by then


def live_run(home, case, pause_s, cut):
    """A live log through the local engine, with `pause_s` after its end; its changes, rows, and the wall clock."""
    rows = case.rows
    stream = settings_of("grid", case.rules)
    written = write_log(
        home.log("grid"), rows, cut.cuts, arrival_us=ARRIVAL_US, live=True
    )
    wall = [ARRIVAL_US]
    engine = LocalEngine(home, stream, now_us=lambda: wall[0])
    while wall[0] <= ARRIVAL_US + pause_s * SECOND_US:
        while engine.batch() or engine.keep_time():
            pass
        wall[0] += SECOND_US
    engine.close()
    clocks = [
        Control(position=len(rows) + number, row=json.loads(written.log.read(segment)))
        for number, segment in enumerate(
            one
            for one in written.log.segments(0)
            if one.clock and "delay_us" in json.loads(written.log.read(one))
        )
    ]
    return tables.read(home.table("changes", "grid")), clocks, engine


@pytest.mark.spec("S1", "X1")
@tries(8)
@given(pauses(layers=False))
def test_a_live_stream_that_pauses_ends_with_what_brute_force_says_at_wall_time(pause):
    case, cut, pause_s, _ = pause
    with tempfile.TemporaryDirectory() as folder:
        changes, clocks, engine = live_run(Home(Path(folder)), case, pause_s, cut)
        delay_us = engine._timekeeper.feed.delays.largest_us
    wall_us = ARRIVAL_US + pause_s * SECOND_US
    assert all(
        clock.row["ts"] <= wall_us - delay_us - timekeeper.SETTLE_US for clock in clocks
    )
    assert len(clocks) <= pause_s + 1
    rows = [*case.rows, *clocks]
    folded = oracle.fold(oracle.changes(rows, rules=case.rules))
    assert len(changes) == len(oracle.changes(rows, rules=case.rules))
    if engine._timekeeper.feed.live and engine.state.max_event != NEVER:
        at_wall = control(
            Clock(ts_us=wall_us - delay_us - timekeeper.SETTLE_US), len(rows)
        )
        assert oracle.agree(
            folded, oracle.answer([*case.rows, at_wall], rules=case.rules)
        )
