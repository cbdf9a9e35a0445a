"""The server's load in small: objects on real roads, a square around each, all moving, judged every 5 s."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from demo.simulation.network import read_network
from demo.simulation.traffic import ALL_REPORT, Round, rounds
from st_common import tables
from st_common.config.home import Home
from st_common.engine.local import LocalEngine
from st_common.position import position_of
from st_common.query.control import QueryRow, encoded
from st_common.query.plan import Plan
from st_common.regions.registry import MovingBox
from tests.kit.log_writer import bare_log
from tests.kit.road_traffic import object_ids, payload, stamp_ms, traffic_stream

SQUARES = 1200
TRAFFIC = replace(ALL_REPORT, at_start=SQUARES, units=4, speed_divisor=100)
COLUMNS = ["position", "query", "object", "sign", "cause", "event_ts"]
SIDE = 1000.000001  # coordinates have six decimals: nobody is on a border


def _pairs(unit: Round) -> set[tuple[int, int]]:
    """Query and object by looking at each object for each query."""
    x, y = np.round(unit.x, 6), np.round(unit.y, 6)
    near = (np.abs(x - x[:, None]) <= SIDE / 2) & (np.abs(y - y[:, None]) <= SIDE / 2)
    np.fill_diagonal(near, val=False)
    return set(zip(*(side.tolist() for side in near.nonzero()), strict=True))


def _landed(home: Home, units: list[Round]) -> list[int]:
    """Lays the places of all units and the queries into the log; the position behind each unit."""
    log = bare_log(home.log("load"))
    log.append(payload(units[0], TRAFFIC), arrival_us=0)
    log.append(_registrations(), arrival_us=0, control=True)
    starts = [position_of(log.end(), 0)]
    for one in units[1:]:
        log.append(payload(one, TRAFFIC), arrival_us=0)
        clock = {"op": "clock", "ts": stamp_ms(one.unit, TRAFFIC) * 1000 + 1}
        log.append(json.dumps(clock).encode(), arrival_us=0, control=True)
        starts.append(position_of(log.end(), 0))
    return starts


def _registrations() -> bytes:
    """A square around each object."""
    plans = [
        Plan(stream="load", inside=MovingBox(focal=f, width=SIDE, height=SIDE))
        for f in object_ids(np.arange(SQUARES))
    ]
    rows = (
        QueryRow(
            name=f"q{n}",
            version=1,
            op="register",
            stream="load",
            position=0,
            arrival_us=0,
            plan=plan,
            text="",
            owner="",
        )
        for n, plan in enumerate(plans)
    )
    return b"".join(map(encoded, rows))


@pytest.mark.spec("P9", "P12", "G4", "G6")
@pytest.mark.parametrize("cache_share", [0.0, 0.5])
def test_each_round_gives_the_changes_between_two_exact_answers(
    shared: Path, tmp_path: Path, cache_share: float
) -> None:
    """As many moving squares as objects, every one of them moving; `python -m bench.rounds` does it with 100,000."""
    network = read_network(shared / "data" / "roadnet-oldenburg")
    units = list(rounds(network, TRAFFIC, seed=1))
    home = Home(tmp_path)
    stream = replace(
        traffic_stream("load", TRAFFIC),
        silence_s=60.0,
        max_speed_mps=10.0,
        cache_share=cache_share,
    )
    starts = _landed(home, units)
    engine = LocalEngine(home, stream)
    while engine.batch():
        pass
    engine.close()
    rows = tables.read(home.table("changes", "load"), columns=COLUMNS).to_pylist()
    assert {
        row["event_ts"].timestamp() % 5 for row in rows if row["cause"] != "registered"
    } == {0.0}
    answer: set[tuple[int, int]] = set()
    moved = 0
    for one, start, end in zip(units, [0, *starts], starts, strict=False):
        exact = _pairs(one)
        changes = [row for row in rows if start <= row["position"] < end]
        for sign, wanted in ((1, exact - answer), (-1, answer - exact)):
            told = [
                (int(r["query"][1:]), int(r["object"][1:]))
                for r in changes
                if r["sign"] == sign
            ]
            assert len(told) == len(set(told))
            assert set(told) == wanted
            moved += len(told) if one.unit else 0
        answer = exact
    assert moved > 2000
    assert all((one.x != before.x).any() for before, one in pairwise(units))
