"""What is stored of a registration or a drop: as much as changed, however many queries and answers there are."""

from dataclasses import replace

import pytest

from st_common.engine.packets import packets
from st_common.engine.states import States
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import delta_from_blob
from st_common.operators.state.delta import apply
from st_common.operators.state.difference import Changed
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from st_common.storage import LocalStorage
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules

QUERIES = 3_000
STREAM = settings_of("grid", Rules())


def register(name, at):
    plan = Plan(
        stream="grid", inside=Box(minx=at, miny=0, maxx=at + 1, maxy=1)
    ).to_json()
    return Control(
        position=0,
        row={
            "op": "register",
            "query": name,
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "",
        },
    )


ROWS = (
    *[register(f"q{n}", n) for n in range(QUERIES)],
    *[
        Fix(position=0, object=f"c{n}", event_us=1, x=n + 0.5, y=0.5)
        for n in range(QUERIES)
    ],
    register("one_more", 7),
    Control(position=0, row={"op": "drop", "query": "q9"}),
)


@pytest.fixture
def steps(tmp_path):
    rows = tuple(replace(row, position=number) for number, row in enumerate(ROWS))
    log = write_log(tmp_path / "log", rows, (2 * QUERIES + 1,)).log
    return [packets(log, segment, STREAM, shards=1)[0] for segment in log.segments(0)]


def stepped(state, packet):
    return step(state, [packet], Settings(), lambda *_: None)


@pytest.mark.spec("S4")
def test_a_delta_holds_the_queries_that_changed_and_no_others(steps):
    state = State()
    for packet in steps[:2]:
        state = stepped(state, packet).state
    for packet, entered, left in ((steps[2], 1, 0), (steps[3], 0, 1)):
        done = stepped(state, packet)
        blobs = [delta.to_blob() for delta in done.deltas]
        assert max(map(len, blobs)) < 20_000  # of nothing it is 15 kB
        for blob in blobs:
            state = apply(state, delta_from_blob(blob))
        assert (done.counters.enters, done.counters.leaves) == (entered, left)
        assert state.queries == done.state.queries
        assert state.answer.tolist() == done.state.answer.tolist()
    assert [one.name for one in state.queries if not one.live] == ["q9"]


@pytest.mark.spec("S4")
def test_a_state_after_a_registration_is_stored_as_what_changed(steps, tmp_path):
    folder = tmp_path / "states"
    states, state = States(LocalStorage(folder), folder), State()
    for packet in steps[:2]:
        state = stepped(state, packet).state
    states.store(state)
    for packet in steps[2:]:
        changed, done = Changed.since(state), stepped(state, packet)
        changed.add(done.deltas)
        state = done.state
        states.store(state, changed)
    sizes = {
        path.suffix: path.stat().st_size for path in folder.iterdir() if path.suffix
    }
    assert sizes[".delta"] < sizes[".state"] / 5
    again = States(LocalStorage(folder), folder).newest(upto=1 << 62)
    assert (again.queries, again.answer.tolist()) == (
        state.queries,
        state.answer.tolist(),
    )
