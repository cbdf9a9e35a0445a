"""Streams of CQL at the outlets: the table keeps + and -, what leaves the system is what the stream has."""

import json
from typing import ClassVar

import pyarrow as pa
import pytest

from st_common import tables
from st_common.answers.changes import passed_changes, stream_changes
from st_common.answers.follow import follow
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.delivery.deliver import deliver
from st_common.delivery.outcome import Taken
from st_common.delivery.settings import DeliverySettings
from st_common.delivery.sink import Sink
from st_common.log.log import Log
from st_common.query.plan import Box, Plan

CONTRACT = load_contract("changes")
EMITS = {"plain": "changes", "came": "istream", "went": "dstream", "there": "rstream"}


def register(
    home: Home, name: str, emit: str, version: int = 1, op: str = "register"
) -> None:
    plan = Plan(
        stream="s", inside=Box(minx=0, miny=0, maxx=5, maxy=5), emit=emit
    ).to_json()
    row = {
        "op": op,
        "query": name,
        "version": version,
        "plan": plan,
        "text": "",
        "owner": "t",
    }
    Log(home.log("s")).append(json.dumps(row).encode(), arrival_us=0, control=True)


def change(home: Home, position: int, *rows: tuple[str, int, int]) -> None:
    made = [
        {
            "position": position,
            "seq": seq,
            "event_ts": position,
            "query": query,
            "query_version": version,
            "sign": sign,
            "object": "o",
            "cause": "enter",
        }
        for seq, (query, version, sign) in enumerate(rows)
    ]
    tables.append(
        home.table("changes", "s"),
        pa.Table.from_pylist(made),
        CONTRACT,
        app="engine",
        version=position,
    )


def told(rows: pa.Table) -> list[tuple[str, int]]:
    return list(zip(rows["query"].to_pylist(), rows["sign"].to_pylist(), strict=True))


EXPECTED = [
    ("plain", 1),
    ("plain", 0),
    ("plain", -1),
    ("came", 1),
    ("went", -1),
    ("there", 1),
    ("there", 0),
]


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    for name, emit in EMITS.items():
        register(home, name, emit)
    change(home, 10, *[(name, 1, sign) for name in EMITS for sign in (1, 0, -1)])
    return home


@pytest.mark.spec("W6")
def test_a_stream_passes_what_came_or_what_went_or_what_is_there(home):
    assert told(passed_changes(home)) == EXPECTED
    assert told(pa.concat_tables(follow(home, seconds=0))) == EXPECTED
    assert len(stream_changes(home, "s")) == 12
    assert told(passed_changes(home, "came", stream="s")) == [("came", 1)]


@pytest.mark.spec("W6")
def test_the_version_that_made_a_change_decides(home):
    outlet = Outlet(home, "s")
    assert told(outlet.passed(stream_changes(home, "s"))) == EXPECTED
    register(home, "came", "dstream", version=2, op="replace")
    register(home, "went", "changes", version=2, op="replace")
    change(
        home,
        20,
        ("came", 1, 1),
        ("came", 1, -1),
        ("came", 2, 1),
        ("came", 2, -1),
        ("went", 2, 1),
        ("went", 2, -1),
    )
    later = [("came", 1), ("came", -1), ("went", 1), ("went", -1)]
    assert told(outlet.passed(stream_changes(home, "s"))) == EXPECTED + later


@pytest.mark.spec("W6")
def test_following_goes_on_where_a_part_has_nothing_to_pass(home, monkeypatch):
    monkeypatch.setattr("st_common.answers.follow._ROWS", 1)
    change(home, 20, ("came", 1, -1))
    change(home, 30, ("came", 1, 1))
    assert told(pa.concat_tables(follow(home, "s", "came", seconds=0))) == [
        ("came", 1),
        ("came", 1),
    ]


@pytest.mark.spec("W6", "X7")
def test_a_delivery_sends_what_the_stream_has(home):
    sent = []

    class Receiver:
        def send(self, part):
            sent.extend(told(part.rows))
            return Taken(refused=())

        def close(self):
            pass

    class ListSink(Sink):
        kind = "list"
        keys: ClassVar = {}

        def receiver(self, delivery, home):  # noqa: ARG002 - of the interface
            return Receiver()

    settings = DeliverySettings(name="d", stream="s", sink=ListSink())
    assert deliver(home, settings, until_idle=True).delivered == len(EXPECTED)
    assert sent == EXPECTED
    change(home, 20, ("came", 1, -1), ("went", 1, -1))
    assert deliver(home, settings, until_idle=True).delivered == 1
    assert sent == [*EXPECTED, ("went", -1)]
    assert deliver(home, settings, until_idle=True).delivered == 0
