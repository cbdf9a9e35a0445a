"""What is known of the registry beside the logs: it spares reading them, and says nothing that they do not say."""

import contextlib
import random
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import LogError
from st_common.log.log import Log
from st_common.query import known, lookup
from st_common.query.lookup import find, history, queries
from st_common.query.problem import TextError
from st_common.query.registry import drop, register
from st_common.query.text import parse
from tests.kit.effort import tries

STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y")
    )
    for name in ("cars", "ships")
}

TEXTS = (
    "DROP QUERY {0}",
    "REPLACE QUERY {0} AS SELECT * FROM {1}",
    *["REGISTER QUERY {0} AS SELECT * FROM {1}"] * 2,
)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def do(home, text):
    return register(home, STREAMS, parse(text), owner="ada", now_us=1_000)


def counted(monkeypatch):
    """The numbers of the segments that are read whole."""
    read, real = [], Log.read

    def reading(self, segment):
        read.append(segment.number)
        return real(self, segment)

    monkeypatch.setattr(Log, "read", reading)
    return read


@pytest.mark.spec("S4", "P4")
def test_a_registration_reads_the_control_rows_that_are_new(home, monkeypatch):
    for number in range(300):
        do(home, f"REGISTER QUERY q{number} AS SELECT * FROM cars")
    read = counted(monkeypatch)
    do(home, "REGISTER QUERY one AS SELECT * FROM cars")
    drop(home, "q7")
    assert len(read) <= 2
    del read[:]
    known.forget()
    do(home, "REGISTER QUERY two AS SELECT * FROM cars")
    assert len(read) < 100
    with pytest.raises(TextError, match="registered already"):
        do(home, "REGISTER QUERY Q8 AS SELECT * FROM cars")
    assert find(home, "q9").text == "REGISTER QUERY q9 AS SELECT * FROM cars"
    assert (find(home, "q7").op, find(home, "q7").version, len(queries(home))) == (
        "drop",
        1,
        301,
    )


@pytest.mark.parametrize("damage", [b"", b"{", b"00000000\n{}", b"\xff\xfe"])
def test_a_damaged_file_is_as_good_as_none(home, damage, monkeypatch):
    monkeypatch.setattr(known, "_STORE_AFTER", 0)
    do(
        home,
        "REGISTER QUERY a AS SELECT * FROM cars; REGISTER QUERY b AS SELECT * FROM cars",
    )
    do(home, "DROP QUERY a")
    (home.root / "registry" / known.FILE).write_bytes(damage)
    known.forget()
    assert do(home, "REGISTER QUERY a AS SELECT * FROM cars")[0].version == 2


def test_a_file_of_another_log_is_not_believed(home, tmp_path, monkeypatch):
    monkeypatch.setattr(known, "_STORE_AFTER", 0)
    do(home, "REGISTER QUERY a AS SELECT * FROM cars")
    do(home, "REGISTER QUERY b AS SELECT * FROM cars")
    shutil.rmtree(home.stream("cars"))
    do(home, "REGISTER QUERY c AS SELECT * FROM cars")
    assert do(home, "REGISTER QUERY a AS SELECT * FROM cars")[0].version == 1
    assert {row.name for row in queries(home)} == {"a", "c"}


def test_a_control_row_that_is_damaged_stops_a_registration(home):
    Log(home.log("cars")).append(b'{"op":"register"}\n', arrival_us=1, control=True)
    with pytest.raises(LogError, match="row 1 is no control row"):
        do(home, "REGISTER QUERY a AS SELECT * FROM cars")


@pytest.mark.spec("S4", "P4")
@tries(25)
@given(st.integers(0, 1 << 32))
def test_what_is_known_is_the_fold_of_the_logs(tmp_path_factory, seed):
    rng, home = random.Random(seed), Home(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "_STORE_AFTER", rng.choice((0, 2, 1000)))
        for number in range(12):
            names = [rng.choice("abc") for _ in range(rng.randint(1, 3))]
            texts = [
                rng.choice(TEXTS).format(name, rng.choice(tuple(STREAMS)))
                for name in names
            ]
            with contextlib.suppress(TextError):
                do(home, "; ".join(texts))
            if rng.random() < 0.4:
                known.forget()
            if rng.random() < 0.2:
                Log(home.log("cars")).append(
                    b'{"op":"clock","ts":1}\n',
                    arrival_us=number,
                    control=True,
                    clock=True,
                )
            expected = lookup.latest_rows(history(home))
            latest = known.known(home, lookup.logged_streams(home)).latest()
            assert {
                n: (r.version, r.live, r.stream, r.position, r.arrival_us)
                for n, r in latest.items()
            } == {
                n: (r.version, r.live, r.stream, r.position, r.arrival_us)
                for n, r in expected.items()
            }
            for name in expected:
                assert find(home, name) == expected[name]
