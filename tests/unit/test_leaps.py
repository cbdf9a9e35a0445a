"""Fixes that leap ahead of their stream: which are believed, and that the log says so to all who read it."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.formats.said_before import SaidBefore, put_in_front, said_before
from st_common.log.appending import append_records
from st_common.log.event_time import EventTime
from st_common.log.leaps import judged
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.log.record_settings import log_for
from tests.kit.effort import tries

SECOND, DAY = 1_000_000, 86_400_000_000
START = 1_530_000_000 * SECOND
NOW = 1_780_000_000 * SECOND  # long after all that is told here
CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    time_unit="us",
    engine="local",
)


def fixes(*told: tuple[str, int]) -> pa.Table:
    names, times = zip(*told, strict=True) if told else ((), ())
    return pa.table(
        {
            "object": pa.array(names, pa.string()).dictionary_encode(),
            "event_ts": pa.array(times, pa.int64()),
        }
    )


def ahead(*told: tuple[str, int], time: EventTime | None = None, now: int = NOW):
    """The numbers of the fixes that are not believed, and the time behind them."""
    is_ahead, behind = judged(
        fixes(*told), time or EventTime(), arrival_us=now, most_us=DAY
    )
    return np.flatnonzero(is_ahead).tolist(), behind


def one_by_one(*told: tuple[str, int], now: int = NOW) -> list[int]:
    """The same where each fix comes in a payload of its own."""
    time, out = EventTime(), []
    for number, one in enumerate(told):
        found, time = ahead(one, time=time, now=now)
        out += [number] if found else []
    return out


def every(seconds: int, *names: str, count: int, start: int = START):
    return [(names[n % len(names)], start + n * seconds * SECOND) for n in range(count)]


def test_one_wrong_year_is_ahead_and_moves_nobody():
    told = every(10, "a", "b", count=200)
    told.insert(20, ("a", START + 365 * DAY))
    found, time = ahead(*told)
    assert found == [20]
    assert time.high_us == told[-1][1]
    assert one_by_one(*told) == [20]


def test_a_pause_of_three_days_is_believed_where_a_second_object_speaks():
    told = every(10, "a", count=9)
    told += every(10, "b", "c", count=2, start=START + 3 * DAY)
    assert ahead(*told)[0] == []
    assert one_by_one(*told) == [9]


def test_a_pause_of_three_days_of_one_object_alone_is_believed_by_its_next_fixes():
    told = every(10, "a", count=9) + every(10, "a", count=5, start=START + 3 * DAY)
    found, time = ahead(*told)
    assert found == []
    assert time.high_us == told[-1][1]
    assert one_by_one(*told) == [9, 10, 11]


def test_a_pause_is_believed_at_once_where_arrivals_agree():
    told = [*every(10, "a", count=9), ("a", START + 3 * DAY)]
    assert ahead(*told, now=START + 3 * DAY + SECOND)[0] == []


def test_a_clock_that_is_always_wrong_is_ahead_while_others_speak():
    told = [
        (name, at + (300 * DAY if name == "wrong" else 0))
        for name, at in every(10, "a", "wrong", "b", count=99)
    ]
    wrong = [number for number, (name, _) in enumerate(told) if name == "wrong"]
    assert ahead(*told)[0] == wrong
    assert one_by_one(*told) == wrong


def test_a_stream_of_rare_fixes_is_used_to_its_steps():
    told = every(5 * 86_400, "stork", count=12)
    assert ahead(*told)[0] == []


def test_a_leap_beyond_rare_fixes_is_ahead_all_the_same():
    told = every(5 * 86_400, "stork", count=12)
    told.append(("stork", told[-1][1] + 400 * DAY))
    assert ahead(*told)[0] == [12]


def test_the_first_fix_of_a_stream_may_be_the_wrong_one():
    told = [("a", START + 365 * DAY), *every(10, "a", "b", count=20)]
    found, time = ahead(*told)
    assert found == [0]
    assert time.high_us == told[-1][1]


@tries(60)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=30),
    st.lists(st.integers(2, 5000), min_size=1, max_size=3, unique=True),
)
def test_lone_leaps_never_silence_the_others(told, leaps):
    true = [(name, START + hours * 3_600 * SECOND) for name, hours in told]
    true += every(10, "a", "b", count=4)
    wrong = [
        (f"w{n}", START + (20 + 3 * n + days) * DAY) for n, days in enumerate(leaps)
    ]
    lone = [
        one for one in wrong if all(abs(one[1] - o[1]) > DAY for o in wrong if o != one)
    ]
    found, time = ahead(*true, *lone)
    assert found == list(range(len(true), len(true) + len(lone)))
    assert time.high_us == max(at for _, at in true)


@pytest.fixture
def log(tmp_path) -> Log:
    return log_for(Home(tmp_path / "home"), CARS)


def put(log: Log, *told: tuple[str, int], stream: StreamSettings = CARS) -> None:
    lines = "".join(f"{name},{at},1,2\n" for name, at in told)
    append_records(
        log, stream, b"id,t,x,y\n" + lines.encode(), arrival_us=NOW, live=False
    )


def rejected(log: Log) -> list[str]:
    """The ids of the rejects that are ahead of the stream."""
    out = []
    for piece in pieces(log, log.segments(0), CARS):
        if piece.part is None:
            continue
        for row in piece.part.decoded.rejects.to_pylist():
            assert row["reason"] == "ahead_of_stream"
            out.append(row["raw"].decode().partition(",")[0])
    return out


def test_the_log_says_which_rows_are_ahead(log):
    put(log, *every(10, "a", "b", count=9), ("x", START + 365 * DAY))
    put(log, *every(10, "a", "b", count=9, start=START + 90 * SECOND))
    assert rejected(log) == ["x"]


def test_whoever_writes_next_knows_how_far_time_has_come(log, tmp_path):
    put(log, *every(10, "a", "b", count=9))
    other = log_for(Home(tmp_path / "home"), CARS)
    put(other, ("x", START + 365 * DAY))
    put(log, ("y", START + 365 * DAY))
    assert rejected(log) == ["x"]  # y agrees with it, and nobody else has spoken since
    assert log.event_time.high_us == START + 365 * DAY


def test_a_log_without_the_setting_believes_every_clock(log):
    put(
        log,
        *every(10, "a", count=2),
        ("x", START + 999 * DAY),
        stream=replace(CARS, max_jump_s=None),
    )
    assert rejected(log) == []


def test_a_record_that_looks_like_the_line_in_front_is_a_record(log):
    line = b'#said {"objects":{},"unfinished":[],"received":"","ahead":[0]}\n'
    payload = put_in_front(line + b"id,t,x,y\na,%d,1,2\n" % START, SaidBefore())
    before, body = said_before(payload)
    assert before == SaidBefore()
    assert body.startswith(line)
    assert decode(payload, CARS, arrival_us=NOW).rows == 2


@tries(30)
@given(st.lists(st.integers(0, 1 << 40), max_size=50))
def test_numbers_of_lines_come_back(lines):
    before = SaidBefore(lines=lines, owners=["é"], document={"now": 1.5})
    again, body = said_before(put_in_front(b"x\n", before))
    assert (list(again.lines), *again.owners) == (lines, "é")
    assert again.document == {"now": 1.5}
    assert body == b"x\n"
    first = put_in_front(b"", before).partition(b"\n")[0]
    assert json.loads(first.removeprefix(b"#said "))["owners"] == ["é"]
