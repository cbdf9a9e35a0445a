"""A stream goes over to other shards and another engine, and whatever crashes meanwhile, its changes stay the same."""

import json
import random
import shutil
import struct
import zlib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.engine import reshard
from st_common.engine.export import (
    exported,
)
from st_common.engine.local import LocalEngine
from st_common.engine.run import run
from st_common.engine.topology import Topology, frozen, topology_of
from st_common.errors import ConfigError, StateError
from st_common.log.log import Log
from st_common.operations.stop import place_marker
from st_common.operators.state.codec import to_blob
from tests.kit.log_writer import bare_log, settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules
from tests.kit.random_plans import KINDS, plan_of
from tests.kit.shards_here import shards_here
from tests.kit.strategies import SECOND_US, case_of

RULES = Rules(lateness_us=0, silence_us=10 * SECOND_US, tick_us=SECOND_US)


def mixed_rows(seed):
    """Rows of a log with queries of every kind: registered at first, some replaced and dropped on the way."""
    rng = random.Random(seed)
    fixes = [
        row for n in range(3) for row in case_of(seed + n).rows if isinstance(row, Fix)
    ]
    rows = [
        query("register", f"{kind}{n}", 1, plan_of(rng, kind))
        for kind in KINDS
        for n in range(2)
    ]
    for number, fix in enumerate(fixes):
        rows.append(fix)
        if number % 20 == 9:
            kind = rng.choice(KINDS)
            rows.append(query("replace", f"{kind}0", 2 + number, plan_of(rng, kind)))
    return [
        *rows,
        Control(position=0, row={"op": "drop", "query": "moving1"}),
        fixes[-1],
    ]


def query(op, name, version, plan):
    row = {
        "op": op,
        "query": name,
        "version": version,
        "plan": plan.to_json(),
        "text": "",
        "owner": "t",
    }
    return Control(position=0, row=row)


def thirds(rows):
    third = len(rows) // 3
    return rows[:third], rows[third : 2 * third], rows[2 * third :]


def written(home, rows):
    write_log(home.log("grid"), rows, cuts=range(0, len(rows), 7))


def ordered(home):
    table = tables.read(home.table("changes", "grid"))
    return table.sort_by([("position", "ascending"), ("seq", "ascending")])


def alone(tmp_path, home, stream):
    """What the local engine tells of the same log from its beginning."""
    other = Home(tmp_path / "alone")
    shutil.copytree(home.log("grid"), other.log("grid"), ignore=lambda *_: ["readers"])
    engine = LocalEngine(other, stream)
    while engine.batch():
        pass
    engine.close()
    return ordered(other)


def go_on(home, stream):
    """The local engine over what is new in the log."""
    run(home, replace(stream, engine="local"), until_idle=True)


@pytest.fixture
def begun(tmp_path):
    """A stream of which the local engine has seen a third, and the other two thirds of its rows."""
    home, stream = Home(tmp_path / "home"), settings_of("grid", RULES)
    first, *rest = thirds(mixed_rows(4))
    written(home, first)
    go_on(home, stream)
    return home, stream, rest


@pytest.mark.spec("X1", "X4", "P8")
def test_a_stream_goes_over_to_three_shards_and_back(tmp_path, begun):
    home, stream, (second, third) = begun
    there = reshard.reshard(
        home, stream, engine="spark", shards=3, export=reshard.of_local
    )
    assert (there.before, there.after.shards) == (Topology(engine="local", shards=1), 3)
    assert sorted(
        path.name for path in (home.stream("grid") / "g1" / "seed").iterdir()
    ) == ["0.bin", "1.bin", "2.bin"]
    assert not (home.stream("grid") / "local" / "states").exists()
    with pytest.raises(
        StateError, match=r"engine = 'spark', now it is 'local'.*streams reshard grid"
    ):
        go_on(home, stream)
    written(home, second)
    back = reshard.reshard(home, stream, engine="local", shards=1, export=shards_here)
    assert back.after.generation == 2
    assert back.after.start == Log(home.log("grid")).end()
    assert not (home.stream("grid") / "g1").exists()
    assert not (home.stream("grid") / "export").exists()
    written(home, third)
    go_on(home, stream)
    found = ordered(home)
    assert len(found) > 200
    assert found.equals(alone(tmp_path, home, stream))


@pytest.mark.spec("X1", "X6")
def test_a_crash_before_the_new_topology_leaves_the_old_generation_in_force(
    tmp_path, begun, monkeypatch
):
    home, stream, (second, third) = begun

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reshard, "put_in_force", crash)
        with pytest.raises(KeyboardInterrupt):
            reshard.reshard(
                home, stream, engine="spark", shards=2, export=reshard.of_local
            )
    assert topology_of(home, "grid") == Topology(engine="local", shards=1)
    assert (home.stream("grid") / "g1").exists()
    written(home, second)
    go_on(home, stream)
    reshard.reshard(home, stream, engine="spark", shards=3, export=reshard.of_local)
    assert len(list((home.stream("grid") / "g1" / "seed").iterdir())) == 3
    written(home, third)
    reshard.reshard(home, stream, engine="local", shards=1, export=shards_here)
    assert ordered(home).equals(alone(tmp_path, home, stream))


@pytest.mark.spec("X1", "X6")
def test_a_crash_after_the_new_topology_leaves_the_new_generation_in_force(
    tmp_path, begun, monkeypatch
):
    home, stream, (second, third) = begun
    remove, calls = reshard._remove_others, []

    def crash(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        remove(*args)

    with monkeypatch.context() as patched:
        patched.setattr(reshard, "_remove_others", crash)
        with pytest.raises(KeyboardInterrupt):
            reshard.reshard(
                home, stream, engine="spark", shards=2, export=reshard.of_local
            )
    old = home.stream("grid") / "local" / "states"
    assert topology_of(home, "grid").generation == 1
    assert old.exists()
    written(home, [*second, *third])
    reshard.reshard(home, stream, engine="local", shards=1, export=shards_here)
    assert not old.exists()
    assert ordered(home).equals(alone(tmp_path, home, stream))


def test_a_stream_that_is_asked_to_stop_is_not_resharded_halfway(begun):
    home, stream, (second, _) = begun
    written(home, second)
    run(home, replace(stream, engine="local"), until_idle=True)
    max(
        (home.stream("grid") / "local" / "states").iterdir()
    ).unlink()  # as after a kill: the table is further
    stop = home.stream("grid") / "stop"

    def stopped(*args):
        stop.touch()
        return reshard.of_local(*args)

    with pytest.raises(
        StateError, match=r"not at the end of its changes.*asked to stop"
    ):
        reshard.reshard(home, stream, engine="spark", shards=2, export=stopped)
    with pytest.raises(StateError, match=r"is held by the file `stop`"):
        reshard.reshard(home, stream, engine="spark", shards=2, export=reshard.of_local)
    assert topology_of(home, "grid") == Topology(engine="local", shards=1)
    stop.unlink()
    place_marker(
        home.stream("grid"), now_us=1
    )  # the supervisor's, which nobody has taken away yet
    reshard.reshard(home, stream, engine="spark", shards=2, export=reshard.of_local)
    with pytest.raises(StateError, match="ended before segment 99"):
        exported(home, "grid", 99, 2)


def test_what_cannot_be(begun, tmp_path):
    home, stream, _ = begun
    for engine, shards in (("local", 2), ("spark", 0), ("flink", 1)):
        with pytest.raises(ConfigError):
            reshard.reshard(
                home, stream, engine=engine, shards=shards, export=reshard.of_local
            )
    with pytest.raises(StateError, match="has never run"):
        reshard.reshard(
            Home(tmp_path / "new"),
            stream,
            engine="spark",
            shards=2,
            export=reshard.of_local,
        )
    same = reshard.reshard(
        home, stream, engine="local", shards=1, export=reshard.of_local
    )
    assert same.before == same.after
    with pytest.raises(StateError, match="was begun with lateness_s"):
        reshard.reshard(
            home,
            replace(stream, lateness_s=9.0),
            engine="spark",
            shards=2,
            export=reshard.of_local,
        )


def test_a_state_of_another_format_is_refused_and_stays(begun):
    home, stream, _ = begun
    path = max((home.stream("grid") / "local" / "states").iterdir())
    blob = to_blob({}, {"format": 1})
    path.write_bytes(struct.pack("<4sIQ", b"FWST", zlib.crc32(blob), len(blob)) + blob)
    with pytest.raises(
        StateError,
        match=r"the state is of format 1, this version reads \d.*version that wrote it",
    ):
        reshard.reshard(home, stream, engine="spark", shards=2, export=reshard.of_local)
    assert topology_of(home, "grid") == Topology(engine="local", shards=1)
    assert path.exists()


def test_what_an_older_version_did_not_record_counts_as_the_default(begun):
    home, stream, _ = begun
    path = home.stream("grid") / "topology.json"
    record = json.loads(path.read_text())
    del record["tick_s"], record["moving"], record["crc32"]
    path.write_text(json.dumps(record))
    frozen(home, stream, engine="local", shards=1)
    with pytest.raises(StateError, match=r"tick_s = 1.0, now it is 2.0"):
        frozen(home, replace(stream, tick_s=2.0), engine="local", shards=1)
    path.write_text("{")
    with pytest.raises(StateError, match="cannot be read"):
        topology_of(home, "grid")


STREAMS = """
[streams.walk]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
crs = "planar"
engine = "local"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


def test_the_command_line_says_what_it_did_and_which_settings_to_change(tmp_path):
    conf = tmp_path / "conf" / "streams.toml"
    conf.parent.mkdir()
    conf.write_text(STREAMS)

    def fairway(*args):
        return CliRunner().invoke(
            app, [*args, "--home", str(tmp_path)], prog_name="fairway"
        )

    bare_log(Home(tmp_path).log("walk")).append(
        b"id,t,x,y\na,1,1,1\nb,2,1,1\n", arrival_us=0
    )
    assert (
        "has never run"
        in fairway("streams", "reshard", "walk", "--engine", "spark").stderr
    )
    assert fairway("run", "walk", "--until-idle").exit_code == 0
    assert (
        fairway("streams", "reshard", "walk").stdout
        == "walk runs on local with 1 shard already\n"
    )
    found = fairway("streams", "reshard", "walk", "--engine", "spark", "--shards", "3")
    assert found.stdout.splitlines() == [
        "walk: from local with 1 shard to spark with 3 shards, from segment 1 on, with 2 objects",
        f'now set engine = "spark" and shards = 3 in [streams.walk] of {conf}',
    ]
    listed = fairway("streams", "list").stdout.splitlines()
    assert listed[1].split() == [
        "walk",
        "spark",
        "with",
        "3",
        "shards",
        "local",
        "with",
        "1",
        "1",
        "1",
    ]
    failed = fairway("run", "walk", "--until-idle")
    assert failed.exit_code == 2
    assert (
        "`fairway streams reshard walk` takes the stream to what the settings say"
        in failed.stderr
    )
    assert "no stream 'wolk'" in fairway("streams", "reshard", "wolk").stderr
