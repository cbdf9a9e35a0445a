"""The law of readings: whoever reads a log, whenever and with whatever settings, reads each record as it was captured.

Records are captured with settings that change; engines run with others. What each capture means by itself is said by
`decode` with its own settings.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from pickle import dumps, loads

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.engine.archive import Archive
from st_common.engine.packets import packets_of
from st_common.engine.topology import begin
from st_common.log.log import Log
from st_common.operators.events.packet import Packet
from st_common.replay.files import replay
from tests.kit.effort import tries

PLAIN = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
VARIANTS = (
    PLAIN,
    replace(PLAIN, delimiter=";"),
    replace(PLAIN, columns=Columns(object="id", event_ts="t", x="y", y="x")),
    replace(PLAIN, time_unit="ms"),
    replace(PLAIN, max_ahead_s=10.0),
    replace(PLAIN, attributes={"n": "long"}),
    replace(PLAIN, attributes={"w": "string", "n": "long"}, nulls=("2",)),
    replace(PLAIN, columns=Columns(object="id", x="x", y="y")),
    replace(
        PLAIN, header=False, columns=Columns(object="1", event_ts="2", x="3", y="4")
    ),
    replace(PLAIN, format="ndjson"),
)
NAMES = ("id", "t", "x", "y", "n", "w")
RECORD = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 40),
    st.integers(-3, 3),
    st.integers(-3, 3),
    st.sampled_from([1, 2, "x"]),
    st.sampled_from(["u", "2", ""]),
)
CAPTURE = st.tuples(
    st.just("capture"),
    st.sampled_from(VARIANTS),
    st.lists(RECORD, min_size=1, max_size=4),
)
BEGIN = st.tuples(st.just("begin"), st.sampled_from(VARIANTS), st.none())
ARCHIVE = st.tuples(st.just("archive"), st.sampled_from(VARIANTS), st.none())


def text_of(stream, records):
    if stream.format == "ndjson":
        return "".join(
            json.dumps(dict(zip(NAMES, record, strict=True))) + "\n"
            for record in records
        )
    rows = [NAMES, *records] if stream.header else records
    return "".join(stream.delimiter.join(map(str, row)) + "\n" for row in rows)


def fixes_of(packets):
    rows = []
    for packet in packets:
        names = packet.objects.take(packet.code).to_pylist() if len(packet.code) else []
        own = {name: values.to_pylist() for name, values in packet.attributes.items()}
        for at, place in enumerate(packet.positions().tolist()):
            values = {
                name: column[at]
                for name, column in own.items()
                if column[at] is not None
            }
            rows.append(
                (
                    place,
                    names[at],
                    int(packet.ts[at]),
                    float(packet.x[at]),
                    float(packet.y[at]),
                    values,
                )
            )
    return sorted(rows, key=lambda row: row[0])


def expected_of(log, captures):
    """What each capture means: the segment that it was written into, decoded by the settings of who captured it."""
    rows = []
    for number, stream in captures:
        segment = log.segment(number)
        fixes = decode(
            log.read(segment), stream, arrival_us=segment.arrival_us
        ).fixes.to_pylist()
        for fix in fixes:
            values = {
                name: fix[name] for name in stream.attributes if fix[name] is not None
            }
            place = (number << 24) | fix["row"]
            rows.append(
                (place, fix["object"], fix["event_ts"], fix["x"], fix["y"], values)
            )
    return rows


@pytest.mark.spec("S2", "S3", "X1")
@tries(60)
@given(
    st.lists(st.one_of(CAPTURE, CAPTURE, BEGIN, ARCHIVE), min_size=1, max_size=8),
    st.sampled_from(VARIANTS),
)
def test_each_record_is_read_as_it_was_captured_by_whoever_reads_it(events, last):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        log, captures, live, read = Log(home.log("cars")), [], last, 0
        at_once = []
        for what, stream, records in events:
            if what == "begin":
                live = begin(home, stream, engine="local", shards=1)
            elif what == "archive":
                job = Archive(home, stream)
                job.batch()
            else:
                path = Path(folder) / "records"
                path.write_text(text_of(stream, records), encoding="utf-8")
                done = replay(
                    log, path, stream, end_mark=False, clock=lambda: 20_000_000
                )
                captures.append((log.end() - 1, stream))
                assert done.segments == 1
            found = log.segments(read)
            at_once += [one[0] for one in packets_of(log, found, live, shards=1)]
            read = log.end()
        last = begin(home, last, engine="local", shards=1)
        segments = log.segments(0)
        expected = expected_of(log, captures)
        assert fixes_of(at_once) == expected
        assert (
            fixes_of(one[0] for one in packets_of(log, segments, last, shards=1))
            == expected
        )
        sent = loads(dumps(last))  # as settings go to tasks on Spark
        dealt = packets_of(log, segments, sent, shards=2)
        blobs = [made[0].to_blob() for made in dealt]
        assert fixes_of(map(Packet.from_blob, blobs)) == expected
        job = Archive(home, last)
        while job.batch():
            pass
        if not captures:
            return
        rows = tables.read(home.table("positions", "cars")).sort_by(
            [("segment", "ascending"), ("row", "ascending")]
        )
        places = [(row["segment"] << 24) | row["row"] for row in rows.to_pylist()]
        assert places == [row[0] for row in expected]
        assert [(row["object"], row["x"], row["y"]) for row in rows.to_pylist()] == [
            (row[1], row[3], row[4]) for row in expected
        ]
