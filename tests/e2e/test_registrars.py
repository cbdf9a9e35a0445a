"""Two processes that register at once, one of them killed anywhere: the registry is never torn."""

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.query.area_store import areas
from st_common.query.lookup import history, queries
from st_common.query.problem import TextError
from st_common.query.registry import drop, register
from st_common.query.text import parse

STREAM = """[streams.{name}]
format = "csv"
crs = "planar"
time_unit = "s"
columns = {{object = "id", event_ts = "t", x = "x", y = "y"}}
"""
ROUNDS = 25
BOX = "INSIDE (0, 0, 10, 10)"


def texts(name):
    """What a registrar says, with the names that are registered when it was carried out: all of them or none."""
    pair = f"REGISTER QUERY {name}_a AS SELECT * FROM cars {BOX}; REGISTER QUERY {name}_b AS SELECT * FROM ships {BOX}"
    area = f"CREATE AREA {name}_area AS (0, 0, 5, 5)"
    yield f"REGISTER QUERY {name}_one AS SELECT * FROM cars {BOX}", {f"{name}_one"}
    yield pair, {f"{name}_a", f"{name}_b"}
    yield (
        f"{area}; REGISTER QUERY {name}_in AS SELECT * FROM ships INSIDE {name}_area",
        {f"{name}_in"},
    )


def registrar(home, streams, told, who):
    """Registers, replaces and drops until it is killed or asked to end; what was carried out goes into a file."""
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with told.open("a") as file:
        for number in range(1_000_000):
            for text, names in texts(f"{who}_{number}"):
                register(home, streams, parse(text), owner=who)
                say(file, "registered", names)
                if ends:
                    return
            register(
                home,
                streams,
                parse(f"REPLACE QUERY {who}_{number}_a AS SELECT * FROM cars"),
                owner=who,
            )
            say(file, "replaced", {f"{who}_{number}_a"})
            drop(home, f"{who}_{number}_one")
            say(file, "dropped", {f"{who}_{number}_one"})
            # Both want this name: one of them has it.
            with suppress(TextError):
                register(
                    home,
                    streams,
                    parse(f"REGISTER QUERY shared_{number} AS SELECT * FROM cars"),
                    owner=who,
                )
                say(file, "registered", {f"shared_{number}_of_{who}"})


def say(file, what, names):
    file.write(f"{what} {' '.join(sorted(names))}\n")
    file.flush()


def begun(home, streams, told, who):
    # On a slow machine the signal may come before the child has its handler: it waits until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        return pid
    code = 1
    try:
        registrar(home, streams, told, who)
        code = 0
    finally:
        os._exit(code)  # nothing of pytest runs twice


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.spec("X4")
def test_a_registrar_that_is_killed_beside_another_tears_nothing(tmp_path: Path):
    (tmp_path / "streams.toml").write_text(
        STREAM.format(name="cars") + STREAM.format(name="ships")
    )
    home, streams, told = (
        Home(tmp_path / "home"),
        load_streams(tmp_path / "streams.toml"),
        tmp_path / "told",
    )
    rng = random.Random(7)
    register(
        home, streams, parse("REGISTER QUERY warm AS SELECT * FROM cars"), owner="t"
    )  # all is imported by now
    for number in range(ROUNDS):
        pids = [begun(home, streams, told, f"{who}{number}") for who in "pq"]
        time.sleep(rng.uniform(0.01, 0.25))
        os.kill(pids[0], signal.SIGKILL)
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(pids[1], signal.SIGTERM)
        assert [ended(pid) for pid in pids] == [-signal.SIGKILL, 0]
        check(home, told)
    assert len(told.read_text().splitlines()) > 2 * ROUNDS


def check(home, told):
    rows = history(home)
    made = Counter((row.name, row.version) for row in rows if row.plan is not None)
    assert set(made.values()) == {1}, "a version of a query is there twice"
    assert (
        max(Counter(row.name for row in rows if row.op == "drop").values(), default=1)
        == 1
    )
    names = {row.name for row in queries(home)}
    ever = {name for name, _ in made}
    said = [line.split() for line in told.read_text().splitlines()]
    for what, *about in said:
        for name in about:
            base, _, who = name.partition("_of_")
            if what == "registered":
                assert base in ever, f"{name} was said to be registered"
                assert not who or owner_of(rows, base) == who
            elif what == "replaced":
                assert (name, 2) in made
            else:
                assert name not in names, f"{name} was said to be dropped"
    for name in ever:
        if name.endswith(("_a", "_b")):
            assert {f"{name[:-1]}a", f"{name[:-1]}b"} <= ever, (
                f"half of {name[:-2]} is there"
            )
    known = {area.name for area in areas(home)}
    assert {
        f"{name.removesuffix('_in')}_area" for name in ever if name.endswith("_in")
    } == known


def owner_of(rows, name):
    return next(row.owner for row in rows if row.name == name and row.plan is not None)
