"""The spatial operator below or above the selection (SPEC G10): the same changes, other tuples."""

import json

import numpy as np
import pyarrow as pa
import pytest

from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.matching.placing import Source
from st_common.operators.runtime.compiling import compile_shard
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import Counters
from st_common.query.plan import Box, Plan


def _packets(order: str, where: str, side: float) -> list[Packet]:
    plan = Plan(
        stream="s",
        inside=Box(minx=0, miny=0, maxx=side, maxy=100),
        where=where,
        order=order,
    )
    row = {"op": "register", "query": "q", "version": 1, "plan": plan.to_json()}
    rng = np.random.default_rng(5)
    out = []
    for number in range(4):
        fixes = pa.table(
            {
                "row": pa.array(np.arange(400), pa.int32()),
                "object": pa.array([f"o{n}" for n in range(400)]).dictionary_encode(),
                "event_ts": np.full(400, (number + 1) * 1_000_000),
                "x": rng.random(400) * 100,
                "y": rng.random(400) * 100,
                "gone": np.zeros(400, bool),
                "speed": rng.random(400) * 100,
            }
        )
        out.append(pack(number, fixes, rows=400, rejects=0, shards=1)[0])
    control = control_packet(1, json.dumps(row).encode())
    moved = [
        pack(n + 2, _fixes_of(p), rows=400, rejects=0, shards=1)[0]
        for n, p in enumerate(out[1:])
    ]
    return [out[0], control, *moved]


def _fixes_of(packet: Packet) -> pa.Table:
    return pa.table(
        {
            "row": packet.row,
            "object": packet.objects.take(pa.array(packet.code)).dictionary_encode(),
            "event_ts": packet.ts,
            "x": packet.x,
            "y": packet.y,
            "gone": packet.gone != 0,
            **packet.attributes,
        }
    )


def _run(packets: list[Packet]) -> tuple[list[dict], Counters, State]:
    done = step(State(), packets, Settings(), lambda *_: pytest.fail("no layer"))
    return settled([done.changes]).to_pylist(), done.counters, done.state


@pytest.mark.spec("G10", "G11")
@pytest.mark.parametrize(("side", "selected"), [(2, 50), (64, 5), (30, 30), (100, 1)])
def test_both_orders_tell_the_same_and_count_other_tuples(side, selected):
    where = f"speed < {selected}"
    space, of_space, _ = _run(_packets("space_first", where, side))
    select, of_select, _ = _run(_packets("select_first", where, side))
    assert space == select
    assert len(space) > 2
    # All points come to the lower operator; what it lets through comes to the upper one.
    assert of_space.probed == 1200
    assert of_select.probed == pytest.approx(1200 * selected / 100, rel=0.4)
    assert of_space.matched == pytest.approx(1200 * side / 100, rel=0.4)


@pytest.mark.spec("G10")
@pytest.mark.parametrize(("side", "selected", "below"), [(2, 50, False), (64, 5, True)])
def test_the_engine_chooses_by_the_last_fixes(side, selected, below):
    _, _, state = _run(_packets("auto", f"speed < {selected}", side))
    known = compile_shard(
        state.queries, Settings(), Source(fixes=state.fixes, objects=state.objects)
    )
    assert [unit.below >= 0 for unit in known.fixwise.units] == [below]
    told, _, _ = _run(_packets("auto", f"speed < {selected}", side))
    assert told == _run(_packets("space_first", f"speed < {selected}", side))[0]
