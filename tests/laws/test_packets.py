"""The law of packets: what was decoded at capture is what each reader would decode, mixed with raw segments or not."""

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode.packed import Encoder
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.engine.packets import packets_of, step_settings
from st_common.log.reader import pieces
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log, ended, settings_of, write_log
from tests.kit.strategies import cases, segmentations

HEADER = b"id,ts,x,y,n,w"
LINES = (
    b"a,1,2,3,4,u",
    b"b,2.5,3,4,,",
    b"t,50,2,3,4,5",
    b"c,2001-01-01T00:00:00Z,1,1,x,v",
    b'"d,e",3,4,5,6,"q"',
    b'f"g,1,2,3,4,5',
    b"j,1,2,3",
    b",1,2,3,4,5",
    b"l,1,99999,3,4,5",
    b"m\0,1,2,3,4,5",
    b"\xff,1,2,3,4,5",
    b"\xc3\xa9,1,2,3,4,5",
    b"",
    b"r,99999999999,2,3,4,5",
    b"s,50,2,3,99999999999999999999,5",
    HEADER,
)
BASE = StreamSettings(
    name="s",
    format="csv",
    time_unit="s",
    max_ahead_s=None,
    attributes={"n": "long", "w": "string"},
    columns=Columns(object="id", event_ts="ts", x="x", y="y"),
)
SETTINGS = {
    "plain": BASE,
    "ahead": replace(BASE, max_ahead_s=10.0),
    "without times": replace(BASE, columns=Columns(object="id", x="x", y="y")),
    "without attributes": replace(BASE, attributes={}),
    "planar": replace(BASE, crs="planar", attributes={"n": "double", "w": "bool"}),
}
GOOD = st.sampled_from(LINES[:3])
TEXT = st.lists(st.one_of(GOOD, GOOD, st.sampled_from(LINES)), max_size=5).map(
    lambda rows: b"\n".join([HEADER, *rows])
)
PAYLOAD = st.one_of(
    TEXT,
    TEXT,
    TEXT,
    TEXT.map(gzip.compress),
    TEXT.map(lambda text: gzip.compress(text)[:-9]),
)
SEGMENT = st.tuples(
    PAYLOAD, st.integers(0, 60).map(lambda s: s * 1_000_000), st.booleans()
)


def written(folder, found, stream, *, mixed):
    """A log of payloads; with `mixed` those that are marked are packets."""
    log = bare_log(Path(folder))
    timeless = stream.columns.event_ts is None
    for payload, arrival_us, is_packet in found:
        coded = (
            Encoder(payload, stream, arrival_us=arrival_us)
            if mixed and is_packet
            else None
        )
        log.append(payload, arrival_us=arrival_us, timeless=timeless, coded=coded)
    return log


def read(log, stream):
    """All fixes and rejects with their places, and what could not be read."""
    fixes, rejects, nulled = [], [], {}
    for piece in pieces(log, log.segments(0), stream):
        first, part = piece.segments[0].number, piece.part
        assert part.decoded.rows == len(part.fix_at) + len(part.reject_at)
        for rows, at, out in (
            (part.decoded.fixes, part.fix_at, fixes),
            (part.decoded.rejects, part.reject_at, rejects),
        ):
            out += [
                (first + int(n), repr(row))
                for n, row in zip(at, rows.to_pylist(), strict=True)
            ]
        for name, count in part.decoded.nulled.items():
            nulled[name] = nulled.get(name, 0) + count
    return fixes, rejects, nulled


@pytest.mark.spec("S2", "P1")
@pytest.mark.parametrize("name", SETTINGS)
@tries(60)
@given(found=st.lists(SEGMENT, max_size=6))
def test_a_packet_holds_what_its_raw_bytes_mean(name, found):
    stream = SETTINGS[name]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        raw = written(one, found, stream, mixed=False)
        packed = written(other, found, stream, mixed=True)
        segments = packed.segments(0)
        assert [segment.packet for segment in segments] == [
            is_packet for _, _, is_packet in found
        ]
        assert read(packed, stream) == read(raw, stream)
        assert [packed.raw(segment) for segment in segments] == [
            payload for payload, _, _ in found
        ]
        assert [segment.arrival_us for segment in segments] == [
            segment.arrival_us for segment in raw.segments(0)
        ]


def packed_copy(raw, folder, stream, chosen):
    """The same log with packets in the place of some segments."""
    log = bare_log(folder)
    for number, segment in enumerate(raw.segments(0)):
        payload = raw.read(segment)
        coded = None
        if not segment.control and chosen[number % len(chosen)]:
            coded = Encoder(payload, stream, arrival_us=segment.arrival_us)
        log.append(
            payload, arrival_us=segment.arrival_us, control=segment.control, coded=coded
        )
    return log


def told(home, stream):
    """Changes, positions and rejects of the local engine and its archive."""
    engine = LocalEngine(home, stream)
    while engine.batch():
        pass
    engine.close()
    job = Archive(home, stream)
    while job.batch():
        pass
    order = [("segment", "ascending"), ("row", "ascending")]
    changes = tables.read(home.table("changes", "grid")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    return changes, *(
        tables.read(home.table(*name)).sort_by(order)
        for name in (("positions", "grid"), ("rejects",))
    )


@pytest.mark.spec("S2", "X1")
@tries(6)
@given(cases(layers=False), st.lists(st.booleans(), min_size=1, max_size=5), st.data())
def test_logs_of_raw_bytes_and_of_packets_give_the_same_tables_on_both_ways_into_an_engine(
    case, chosen, data
):
    case = ended(case)
    cut = data.draw(segmentations(len(case.rows)))
    stream = settings_of("grid", case.rules)
    with tempfile.TemporaryDirectory() as folder:
        one, other = Home(Path(folder) / "raw"), Home(Path(folder) / "packet")
        raw = write_log(one.log("grid"), case.rows, cut.cuts).log
        packed = packed_copy(raw, other.log("grid"), stream, chosen)
        expected, found = told(one, stream), told(other, stream)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.schema == theirs.schema
            assert repr(mine.to_pylist()) == repr(
                theirs.to_pylist()
            )  # of an object that is gone x is NaN
        segments = packed.segments(0)
        blobs = [
            made[0].to_blob() for made in packets_of(packed, segments, stream, shards=1)
        ]
        every = data.draw(st.integers(1, max(1, len(blobs))))
        state, changes = State(), []
        for at in range(0, len(blobs), every):
            some = [Packet.from_blob(blob) for blob in blobs[at : at + every]]
            done = step(state, some, step_settings(stream), lambda *_: None)
            state = done.state
            changes.append(settled([done.changes]))
        names = [name for name in expected[0].column_names if name != "event_date"]
        by_steps = [row for part in changes for row in part.select(names).to_pylist()]
        assert len(by_steps) == len(expected[0])
        assert [
            (row["position"], row["seq"], row["object"], row["sign"])
            for row in by_steps
        ] == [
            (row["position"], row["seq"], row["object"], row["sign"])
            for row in expected[0].to_pylist()
        ]
