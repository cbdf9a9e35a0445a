"""Caches of moving queries (SPEC G6): the same answers at any share, fewer looks, misses without refills."""

import json

import numpy as np
import pyarrow as pa
import pytest

from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.runtime.stages import step
from st_common.operators.skeleton.cache_counts import CacheCounts, summed
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import Counters
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Plan
from st_common.regions.registry import MovingBox, MovingCircle

SECOND = 1_000_000
OBJECTS = 300
SIDE = 100.0


def _registered(queries: int, kinds: int = 4) -> Packet:
    rows = []
    for number in range(queries):
        focal = f"o{number}"
        plan = (
            Plan(stream="s", inside=MovingBox(focal=focal, width=20, height=12)),
            Plan(stream="s", inside=MovingCircle(focal=focal, radius_m=9)),
            Plan(
                stream="s",
                neighbours=Nearest(k=1 + number % 7, place=Place(focal=focal)),
            ),
            Plan(
                stream="s",
                neighbours=Nearest(k=3, place=Place(x=50, y=50)),
                where="object <> 'o7'",
            ),
        )[number % kinds]
        rows.append(
            {
                "op": "register",
                "query": f"q{number}",
                "version": 1,
                "plan": plan.to_json(),
            }
        )
    return control_packet(0, "\n".join(json.dumps(row) for row in rows).encode())


def _rounds(
    seed: int, *, share: float, rounds: int = 12, step_m: float = 2.0
) -> list[Packet]:
    """Everybody reports first; then a share of the objects moves each second, and one vanishes."""
    rng = np.random.default_rng(seed)
    where = rng.random((OBJECTS, 2)) * SIDE
    packets = []
    for number in range(1, rounds + 1):
        who = (
            np.arange(OBJECTS)
            if number == 1
            else np.sort(rng.choice(OBJECTS, int(OBJECTS * share), replace=False))
        )
        where[who] += rng.normal(0, step_m, (len(who), 2))
        gone = np.zeros(len(who), bool)
        gone[0] = number % 4 == 0
        fixes = pa.table(
            {
                "row": pa.array(np.arange(len(who)), pa.int32()),
                "object": pa.array([f"o{n}" for n in who]).dictionary_encode(),
                "event_ts": np.full(len(who), number * SECOND),
                "x": where[who, 0],
                "y": where[who, 1],
                "gone": gone,
            }
        )
        packets.append(pack(number, fixes, rows=len(who), rejects=0, shards=1)[0])
    return [*packets, control_packet(rounds + 1, b'{"op":"end"}')]


def _no_layer(layer, version):
    pytest.fail("no query joins a layer")


def _run(
    packets: list[Packet], settings: Settings
) -> tuple[list[dict], Counters, np.ndarray]:
    """One packet a batch; the changes, what was counted after the first round, the answer in the end."""
    state, told, counters = State(), [], Counters()
    for packet in packets:
        done = step(state, [packet], settings, _no_layer)
        state = done.state
        told.append(done.changes)
        if packet.segment > 2:
            counters += done.counters
    return settled(told).to_pylist(), counters, state.tick_answer


@pytest.mark.spec("G6")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("margin", [0.5, 3.0, 30.0])
def test_answers_are_the_same_with_a_cache_of_any_width(seed, margin):
    packets = [_registered(60), *_rounds(seed, share=0.2)]
    without, _, _ = _run(packets, Settings())
    with_cache, counters, _ = _run(packets, Settings(margin=margin))
    assert with_cache == without
    assert len(without) > 100
    gone_and_back = 6
    assert (
        counters.refills <= gone_and_back
        if margin == 30
        else counters.refills > gone_and_back
    )


@pytest.mark.spec("G6")
def test_with_a_cache_a_moving_query_needs_no_look_at_objects_outside_of_it():
    packets = [_registered(3), *_rounds(1, share=0.02, step_m=0.1)]
    _, without, _ = _run(packets, Settings())
    _, with_cache, _ = _run(packets, Settings(margin=5.0))
    assert with_cache.refills == 0
    assert with_cache.touched * 2 < without.touched


@pytest.mark.spec("G6", "G11")
def test_without_refills_the_same_is_told_and_a_wider_cache_misses_fewer():
    packets = [_registered(60), *_rounds(3, share=0.2)]
    exact, without, _ = _run(packets, Settings())
    assert without.misses == 0
    missed = []
    for margin in (0.5, 2.0, 60.0):
        told, counters, _ = _run(packets, Settings(margin=margin, refills=False))
        assert told == exact
        assert counters.refills == 0
        missed.append(counters.misses)
    assert missed[0] > missed[1] > missed[2] >= 0


def _caches(packets: list[Packet], settings: Settings) -> dict[str, CacheCounts]:
    state, found = State(), []
    for packet in packets:
        done = step(state, [packet], settings, _no_layer)
        state = done.state
        found.append(done.caches)
    return summed(found)


def _packet(number: int, *fixes: tuple[str, float, float]) -> Packet:
    """One fix of each object in that second."""
    rows = pa.table(
        {
            "row": pa.array(np.arange(len(fixes)), pa.int32()),
            "object": pa.array([name for name, _, _ in fixes]).dictionary_encode(),
            "event_ts": np.full(len(fixes), number * SECOND),
            "x": [x for _, x, _ in fixes],
            "y": [y for _, _, y in fixes],
            "gone": np.zeros(len(fixes), bool),
        }
    )
    return pack(number, rows, rows=len(fixes), rejects=0, shards=1)[0]


@pytest.mark.spec("G6")
@pytest.mark.parametrize(
    ("plan", "kind"),
    [
        (
            Plan(stream="s", inside=MovingBox(focal="f", width=20, height=20)),
            "moving_box",
        ),
        (
            Plan(stream="s", inside=MovingCircle(focal="f", radius_m=10)),
            "moving_circle",
        ),
        (Plan(stream="s", neighbours=Nearest(k=1, place=Place(focal="f"))), "nearest"),
    ],
)
def test_a_miss_is_a_member_that_the_query_reaches_though_it_did_not_report(plan, kind):
    """`near` lies in the first cache, `far` and `last` do not; the query goes to them, one after the other."""
    register = {"op": "register", "query": "q", "version": 1, "plan": plan.to_json()}
    packets = [
        control_packet(0, json.dumps(register).encode()),
        _packet(1, ("f", 0, 0), ("near", 9, 0), ("far", 100, 0), ("last", 200, 0)),
        _packet(2, ("f", 3, 0)),
        _packet(3, ("f", 98, 0)),  # `far` did not report: the paper misses it
        _packet(4, ("f", 99, 0)),  # it is a member by now: no miss again
        _packet(
            5, ("f", 199, 0), ("last", 201, 0)
        ),  # `last` reports where the query is now
        control_packet(6, b'{"op":"end"}'),
    ]
    told, _, _ = _run(packets, Settings(margin=5.0, refills=False))
    assert told == _run(packets, Settings())[0]
    counts = _caches(packets, Settings(margin=5.0, refills=False))
    assert set(counts) == {kind}
    assert (counts[kind].misses, counts[kind].refills) == (1, 0)
    filled = _caches(packets, Settings(margin=5.0))[kind]
    assert (filled.misses, filled.refills) == (0, 2)


@pytest.mark.spec("G6")
def test_the_overhead_of_caches_in_area_and_in_fixes_is_counted_by_kind():
    """Boxes of 20 x 12 and circles of radius 9, margin 3; two objects are in each cache, and one of them in the box."""
    plans = {
        "b": Plan(stream="s", inside=MovingBox(focal="f", width=20, height=12)),
        "c": Plan(stream="s", inside=MovingCircle(focal="f", radius_m=9)),
    }
    rows = [
        {"op": "register", "query": q, "version": 1, "plan": p.to_json()}
        for q, p in plans.items()
    ]
    packets = [
        control_packet(0, "\n".join(json.dumps(row) for row in rows).encode()),
        _packet(
            1,
            ("f", 0, 0),
            ("in", 5, 0),
            ("cached", 0, 8.5),
            ("out", 50, 0),
            ("aside", 0, 50),
        ),
        _packet(2, ("aside", 0, 51)),
        _packet(3, ("aside", 0, 52)),
        control_packet(4, b'{"op":"end"}'),
    ]
    counts = _caches(packets, Settings(margin=3.0))
    box, circle = counts["moving_box"], counts["moving_circle"]
    assert box.cache_area / box.area == pytest.approx(26 * 18 / (20 * 12))
    assert circle.cache_area / circle.area == pytest.approx((12 / 9) ** 2)
    assert box.area % (20 * 12) == 0  # a whole number of ticks
    ticks = round(box.area / (20 * 12))
    assert (box.members, box.cached) == (ticks, 2 * ticks)
    assert (circle.members, circle.cached) == (2 * ticks, 2 * ticks)
