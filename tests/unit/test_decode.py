"""Decoding as a whole: every record once, in fixes or in rejects, whatever the bytes are."""

import csv
import gzip
import io
import json
import math
import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import st_common.formats.csv_records as csv_reader
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode, fixes_schema
from st_common.formats.records import columns_read
from st_common.formats.registry import FORMATS

NOW = 1_700_000_000_000_000
COLUMNS = Columns(object="id", event_ts="ts", x="x", y="y")
ATTRIBUTES = {"speed": "double", "kind": "string", "count": "long", "on": "bool"}


def stream(form: str = "csv", **other) -> StreamSettings:
    settings = {"columns": COLUMNS, "time_unit": "s", "max_ahead_s": None} | other
    return StreamSettings(name="s", format=form, **settings)


def fixes(decoded: Decoded) -> list[tuple]:
    return [tuple(row.values()) for row in decoded.fixes.to_pylist()]


def reasons(decoded: Decoded) -> list[tuple[int, str]]:
    return [(row["row"], row["reason"]) for row in decoded.rejects.to_pylist()]


def check_whole(decoded: Decoded, settings: StreamSettings) -> None:
    """What holds for every payload: schemas, and each record exactly once."""
    assert decoded.fixes.schema == fixes_schema(settings)
    rows = decoded.fixes["row"].to_pylist(), decoded.rejects["row"].to_pylist()
    assert [sorted(part) for part in rows] == list(rows)
    assert sorted(rows[0] + rows[1]) == list(range(decoded.rows))
    assert (
        decoded.rejects["reason"].null_count == decoded.rejects["raw"].null_count == 0
    )
    assert all(len(raw) <= 4096 for raw in decoded.rejects["raw"].to_pylist())
    here = decoded.fixes.filter(pc.invert(decoded.fixes["gone"]))
    assert pc.all(pc.is_finite(here["x"])).as_py() is not False
    assert (
        decoded.fixes["object"].null_count == decoded.fixes["event_ts"].null_count == 0
    )


@pytest.mark.spec("B7")
def test_fixes_carry_their_attributes_in_the_declared_types():
    settings = stream(attributes=ATTRIBUTES)
    payload = b"id,ts,x,y,speed,kind,count,on\na,1,2,3,4.5,car,7,true\nb,2,3,4,,,,\n"
    decoded = decode(payload, settings, arrival_us=NOW)
    check_whole(decoded, settings)
    assert fixes(decoded) == [
        (0, "a", 1_000_000, 2.0, 3.0, False, 4.5, "car", 7, True),
        (1, "b", 2_000_000, 3.0, 4.0, False, None, None, None, None),
    ]
    assert decoded.fixes["object"].type == pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (",1,2,3", "missing_object"),
        ("a,,2,3", "missing_time"),
        ("a,noon,2,3", "bad_time"),
        ("a,-1,2,3", "bad_time"),
        ("a,1e30,2,3", "bad_time"),
        ("a,0x10,2,3", "bad_time"),
        ("a,7258118400,2,3", "bad_time"),
        ("a,1,,3", "missing_position"),
        ("a,1,2,", "missing_position"),
        ("a,1, ,3", "missing_position"),
        ("a,1,n/a,3", "bad_number"),
        ("a,1,0x10,3", "bad_number"),
        ("a,1,1_000,3", "bad_number"),
        ("a,1,nan,3", "bad_number"),
        ("a,1,2,-inf", "bad_number"),
        ("a,1,1e400,3", "bad_number"),
        ("a,1,1 2,3", "bad_number"),
        ("a,1,180.001,3", "out_of_crs"),
        ("a,1,2,91", "out_of_crs"),
        ("a,1,2", "ragged"),
        ("a,1,2,3,4", "ragged"),
        (" ", "ragged"),
        ("a,1,2,3\0", "nul"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_bad_record_is_a_reject_with_its_reason_and_bytes(
    record: str, reason: str, alone: bool
):
    others = "" if alone else "good,1,2,3\n"
    payload = f"id,ts,x,y\n{others}{record}\n{others}".encode()
    decoded = decode(payload, stream(), arrival_us=NOW)
    check_whole(decoded, stream())
    assert reasons(decoded) == [(0 if alone else 1, reason)]
    assert decoded.rejects["raw"].to_pylist() == [record.encode()]
    assert decoded.fixes["object"].to_pylist() == ([] if alone else ["good"] * 2)


@pytest.mark.parametrize(
    ("record", "fix"),
    [
        (" a ,1,2,3", (" a ", 1_000_000, 2.0, 3.0)),
        ("a, 12 , 2 ,\t3", ("a", 12_000_000, 2.0, 3.0)),
        ("a,1,-180,90", ("a", 1_000_000, -180.0, 90.0)),
        ("a,1,+2,.5", ("a", 1_000_000, 2.0, 0.5)),
        ("a,1,1.,1e1", ("a", 1_000_000, 1.0, 10.0)),
        ("a,1.25,2,3", ("a", 1_250_000, 2.0, 3.0)),
        ("a,1e3,2,3", ("a", 1_000_000_000, 2.0, 3.0)),
        ("007,1,2,3", ("007", 1_000_000, 2.0, 3.0)),
        ("1.10,1,2,3", ("1.10", 1_000_000, 2.0, 3.0)),
        ("\u00e9\u4e2d,1,2,3", ("\u00e9\u4e2d", 1_000_000, 2.0, 3.0)),
    ],
)
def test_an_odd_but_readable_record_is_a_fix(record: str, fix: tuple):
    decoded = decode(f"id,ts,x,y\n{record}\n".encode(), stream(), arrival_us=NOW)
    assert [row[1:5] for row in fixes(decoded)] == [fix]


def test_coordinates_of_a_planar_crs_need_only_be_finite():
    payload = b"id,ts,x,y\na,1,500000,6000000\nb,1,inf,0\n"
    decoded = decode(payload, stream(crs="EPSG:25832"), arrival_us=NOW)
    assert [row[1] for row in fixes(decoded)] == ["a"]
    assert reasons(decoded) == [(1, "bad_number")]


@pytest.mark.spec("B6", "P1")
def test_arrival_is_stamped_where_no_event_time_is_given():
    settings = stream(columns=Columns(object="id", x="x", y="y"))
    decoded = decode(b"id,x,y\na,1,2\n", settings, arrival_us=NOW)
    assert fixes(decoded) == [(0, "a", NOW, 1.0, 2.0, False)]


@pytest.mark.spec("P1")
def test_records_without_times_have_their_own_instants_in_their_order_and_the_last_that_of_the_arrival():
    settings = stream(columns=Columns(object="id", x="x", y="y"))
    decoded = decode(b"id,x,y\na,1,2\n,1,2\na,3,4\nb,5,6\n", settings, arrival_us=NOW)
    assert [row[:3] for row in fixes(decoded)] == [
        (0, "a", NOW - 3),
        (2, "a", NOW - 1),
        (3, "b", NOW),
    ]


def test_a_gone_record_needs_no_coordinates():
    columns = Columns(
        object="id",
        event_ts="ts",
        x="x",
        y="y",
        gone="state",
        gone_values=("left", "0"),
    )
    payload = b"id,ts,x,y,state\na,1,2,3,left\nb,1,,,0\nc,1,n/a,99,left\nd,1,2,3,here\ne,1,,,here\n,1,,,left\n"
    decoded = decode(payload, stream(columns=columns), arrival_us=NOW)
    assert decoded.fixes["gone"].to_pylist() == [True, True, True, False]
    assert decoded.fixes["x"].to_pylist()[0] == 2.0
    assert [math.isnan(x) for x in decoded.fixes["x"].to_pylist()] == [
        False,
        True,
        True,
        False,
    ]
    assert reasons(decoded) == [(4, "missing_position"), (5, "missing_object")]


@pytest.mark.parametrize("value", ["true", "1"])
def test_gone_in_json_may_be_a_boolean_or_a_number(value: str):
    columns = Columns(object="id", event_ts="ts", x="x", y="y", gone="gone")
    payload = (
        b'{"id":"a","ts":1,"gone":%s}\n{"id":"b","ts":1,"x":1,"y":1,"gone":false}'
        % value.encode()
    )
    decoded = decode(payload, stream("ndjson", columns=columns), arrival_us=NOW)
    assert decoded.fixes["gone"].to_pylist() == [True, False]


def test_a_fix_too_far_ahead_of_its_arrival_is_rejected_and_the_bound_is_closed():
    now_s = NOW // 1_000_000
    payload = f"id,ts,x,y\na,{now_s + 60},0,0\nb,{now_s + 60}.000001,0,0\nc,{now_s - 10**6},0,0\n".encode()
    decoded = decode(payload, stream(max_ahead_s=60.0), arrival_us=NOW)
    assert decoded.fixes["object"].to_pylist() == ["a", "c"]
    assert reasons(decoded) == [(1, "too_far_ahead")]


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        ("speed", ["", "4.5", " 1e3 ", "nan"], ["fast", "inf", "1,5"]),
        (
            "count",
            ["", "12", "-7", "5.0", "9223372036854775807"],
            ["5.5", "9223372036854775808", "0x1F", "1e19"],
        ),
        ("on", ["", "true", "FALSE", "1", "0", "yes"], ["maybe", "2"]),
    ],
)
def test_an_attribute_of_another_type_is_null_and_counted_and_costs_no_fix(
    column: str, good: list[str], bad: list[str]
):
    settings = stream(attributes={column: ATTRIBUTES[column]}, delimiter=";")
    lines = [f"a;1;2;3;{value}" for value in good + bad]
    decoded = decode(
        f"id;ts;x;y;{column}\n{chr(10).join(lines)}".encode(), settings, arrival_us=NOW
    )
    assert reasons(decoded) == []
    values = decoded.fixes[column].to_pylist()
    assert values[0] is None
    assert values[1] is not None
    assert values[len(good) :] == [None] * len(bad)
    assert decoded.nulled == {column: len(bad)}


def test_attributes_of_rejects_are_not_counted():
    settings = stream(attributes={"speed": "double"})
    decoded = decode(
        b"id,ts,x,y,speed\na,1,2,3,fast\n,1,2,3,fast\nb,1,2,3,4\n",
        settings,
        arrival_us=NOW,
    )
    assert decoded.nulled == {"speed": 1}
    assert decoded.fixes["speed"].to_pylist() == [None, 4.0]


@pytest.mark.parametrize(
    ("form", "payload"),
    [
        (
            "csv",
            b"id,ts,x,y,speed,kind\na,1,2,3,NA,-\nb,2,2,3, - ,car\n-,3,2,3,4,car\nc,NA,2,3,4,car\nd,4,-,3,4,car\n",
        ),
        (
            "tsv",
            b"id\tts\tx\ty\tspeed\tkind\na\t1\t2\t3\tNA\t-\nb\t2\t2\t3\t - \tcar\n-\t3\t2\t3\t4\tcar\n"
            b"c\tNA\t2\t3\t4\tcar\nd\t4\t-\t3\t4\tcar\n",
        ),
        (
            "ndjson",
            b'{"id":"a","ts":1,"x":2,"y":3,"speed":"NA","kind":"-"}\n{"id":"b","ts":2,"x":2,"y":3,"speed":" - ",'
            b'"kind":"car"}\n{"id":"-","ts":3,"x":2,"y":3}\n{"id":"c","ts":"NA","x":2,"y":3}\n'
            b'{"id":"d","ts":4,"x":"-","y":3}\n',
        ),
    ],
)
def test_words_for_a_missing_value_are_the_same_in_every_format(
    form: str, payload: bytes
):
    delimiter = "\t" if form == "tsv" else ","
    settings = stream(
        form,
        nulls=("NA", "-"),
        attributes={"speed": "double", "kind": "string"},
        delimiter=delimiter,
    )
    decoded = decode(payload, settings, arrival_us=NOW)
    check_whole(decoded, settings)
    assert decoded.fixes["speed"].to_pylist() == [None, None]
    assert decoded.fixes["kind"].to_pylist() == [None, "car"]
    assert reasons(decoded) == [
        (2, "missing_object"),
        (3, "missing_time"),
        (4, "missing_position"),
    ]
    assert decoded.nulled == {}


def test_every_format_gives_no_rows_for_no_bytes():
    """But a FeedMessage is never empty: a feed that gives none is broken, and that is told."""
    for form in set(FORMATS) - {"gtfs-rt"}:
        for payload in (b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"):
            decoded = decode(payload, stream(form), arrival_us=NOW)
            assert (decoded.rows, decoded.fixes.num_rows, decoded.rejects.num_rows) == (
                0,
                0,
                0,
            )
            check_whole(decoded, stream(form))


# --- gzip ---

PLAIN = b"id,ts,x,y\n" + b"".join(b"car-%d,%d,1,2\n" % (n, n) for n in range(1000))


def test_a_gzip_payload_is_unpacked_also_with_several_members():
    expected = fixes(decode(PLAIN, stream(), arrival_us=NOW))
    half = PLAIN.index(b"car-500")
    for packed in (
        gzip.compress(PLAIN),
        gzip.compress(PLAIN[:half]) + gzip.compress(PLAIN[half:]),
    ):
        assert fixes(decode(packed, stream(), arrival_us=NOW)) == expected
        assert (
            fixes(decode(packed + b"\0" * 100, stream(), arrival_us=NOW)) == expected
        )  # as tar pads


@pytest.mark.parametrize("cut", [3, 12, 500, 2000, -9, -1])
def test_a_truncated_gzip_gives_what_can_be_read_and_one_reject_for_the_rest(cut: int):
    decoded = decode(gzip.compress(PLAIN)[:cut], stream(), arrival_us=NOW)
    check_whole(decoded, stream())
    assert reasons(decoded) == [(decoded.rows - 1, "bad_gzip")]
    assert (
        fixes(decoded)
        == fixes(decode(PLAIN, stream(), arrival_us=NOW))[: decoded.rows - 1]
    )


def test_what_follows_a_gzip_or_breaks_it_is_a_reject():
    packed = bytearray(gzip.compress(PLAIN))
    assert reasons(decode(bytes(packed) + b"garbage", stream(), arrival_us=NOW)) == [
        (1000, "bad_gzip")
    ]
    packed[-6] ^= 1  # the checksum
    assert reasons(decode(bytes(packed), stream(), arrival_us=NOW))[-1][1] == "bad_gzip"


def test_a_gzip_bomb_costs_no_more_memory_than_a_segment_may_hold():
    bomb = gzip.compress(b"\0" * (1 << 28))
    assert len(bomb) < 1 << 19
    tracemalloc.start()
    decoded = decode(
        gzip.compress(b"id,ts,x,y\na,1,2,3\nb,") + bomb, stream(), arrival_us=NOW
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 27
    assert decoded.fixes["object"].to_pylist() == ["a"]
    assert reasons(decoded) == [(1, "too_large")]
    assert decoded.rejects["raw"].to_pylist() == [b"b," + b"\0" * 4094]


# --- any bytes ---

CSV_LINES = [
    b"a,1,2,3",
    b"b,2,3,4",
    b'"c",3,4,5',
    b'"d\nd",4,5,6',
    b"e,5,6",
    b",,,",
    b"f,6,n/a,7",
    "\u00e9,7,8,9".encode(),
]
JSON_LINES = [
    b'{"id":"a","ts":1,"x":2,"y":3}',
    b'{"id":7,"ts":"2","x":"3","y":4.5,"z":{"x":[1,"]"]}}',
    b'{"id":"\\"","ts":null}',
    b"{}",
    b"[1,2]",
    b"5",
]
PIECES = [
    b"\n",
    b"\r",
    b"\r\n",
    b",",
    b'"',
    b'""',
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
]
PIECES += [
    b"id,ts,x,y\n",
    b"\x1f\x8b",
    b" ",
    b"nan",
    b"-",
    b"1e999",
    b"'",
    b"\t",
    b"\n\n",
]


@st.composite
def mutated(draw: st.DrawFn, lines: list[bytes], head: bytes) -> bytes:
    payload = (
        head
        + b"\n".join(draw(st.lists(st.sampled_from(lines), max_size=8)))
        + draw(st.sampled_from([b"", b"\n"]))
    )
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(payload)))
        stop = start + draw(st.integers(0, 3))
        piece = draw(
            st.one_of(
                st.sampled_from(PIECES), st.binary(max_size=3), st.sampled_from(lines)
            )
        )
        payload = payload[:start] + piece + payload[stop:]
    return payload


ANY_BYTES = [
    mutated(CSV_LINES, b"id,ts,x,y\n"),
    mutated(CSV_LINES, b""),
    mutated(JSON_LINES, b""),
    st.binary(max_size=60),
]


@given(st.one_of(ANY_BYTES))
def test_any_bytes_become_records_that_are_fixes_or_rejects_once(payload: bytes):
    for settings in (
        stream(),
        stream("tsv", delimiter="\t"),
        stream("ndjson"),
        stream(quote=""),
        stream(header=False, columns=Columns(object="1", event_ts="2", x="3", y="4")),
        stream(attributes=ATTRIBUTES),
    ):
        check_whole(decode(payload, settings, arrival_us=NOW), settings)


def test_no_json_is_a_reject_wherever_the_database_cuts_it_to_show_it():
    for blanks in range(8):
        line = b'{"id":"a"} %b"%b"' % (b" " * blanks, "\u20ac".encode() * 30)
        decoded = decode(line, stream("ndjson"), arrival_us=NOW)
        assert reasons(decoded) == [(0, "bad_json")]


@given(mutated(JSON_LINES, b""))
def test_ndjson_has_a_record_for_each_line_that_is_not_blank(payload: bytes):
    if re.match(
        rb"(\xef\xbb\xbf)?[ \t\r\n]*\[[ \t\r\n]*[{\]]", payload
    ) or payload.startswith(b"\x1f\x8b"):
        return  # one array, or packed
    lines = [re.sub(rb"^(\xef\xbb\xbf)+", b"", line) for line in payload.split(b"\n")]
    expected = sum(line not in (b"", b"\r") for line in lines)
    assert decode(payload, stream("ndjson"), arrival_us=NOW).rows == expected


@given(mutated(CSV_LINES[4:], b"id,ts,x,y\n"))
def test_csv_without_quotes_has_a_record_for_each_line_that_is_not_blank(
    payload: bytes,
):
    payload = b"id,ts,x,y\n" + payload.replace(b'"', b"'")
    lines = [
        re.sub(rb"^(\xef\xbb\xbf)+", b"", line).removesuffix(b"\r")
        for line in payload.split(b"\n")
    ]
    expected = sum(line not in (b"", b"id,ts,x,y") for line in lines)
    assert decode(payload, stream(), arrival_us=NOW).rows == expected


@given(st.lists(st.sampled_from(CSV_LINES[:3] + CSV_LINES[4:]), min_size=1, max_size=8))
def test_what_becomes_of_a_record_does_not_depend_on_its_neighbours(lines: list[bytes]):
    def outcomes(*records: bytes) -> list[tuple]:
        decoded = decode(b"\n".join([b"id,ts,x,y", *records]), stream(), arrival_us=NOW)
        rejects = [
            (row["row"], row["reason"], row["raw"])
            for row in decoded.rejects.to_pylist()
        ]
        return [
            row[1:]
            for row in sorted([*fixes(decoded), *rejects], key=lambda row: row[0])
        ]

    assert outcomes(*lines) == [outcome for line in lines for outcome in outcomes(line)]


@pytest.mark.parametrize("last", [b"", b"a,1,2,3\n"])
def test_a_quote_that_stays_open_spoils_its_line_also_where_it_is_the_last(last: bytes):
    payload = b'id,ts,x,y\na"b,1,2,"3\n' + last
    decoded = decode(payload.removesuffix(b"\n"), stream(), arrival_us=NOW)
    assert reasons(decoded) == [(0, "unbalanced_quote")]


@given(st.one_of(ANY_BYTES), st.sampled_from(['"', ""]), st.booleans())
def test_one_pass_finds_what_sorting_out_finds(
    payload: bytes, quote: str, header: bool
):
    named = COLUMNS if header else Columns(object="1", event_ts="2", x="3", y="4")
    settings = stream(quote=quote, header=header, columns=named)
    body, wanted = csv_reader._body(payload, settings), columns_read(settings)
    once = csv_reader._read_whole(body, wanted)
    if once is None:
        return
    sorted_out = csv_reader._read_sorted_out(body, wanted)
    assert once.fault.tolist() == sorted_out.fault.tolist()
    rows = np.arange(len(once.fault))
    assert once.raw(rows).equals(sorted_out.raw(rows))
    for name in wanted if sorted_out.fields else ():
        assert once.fields[name].equals(sorted_out.fields[name])


# --- against Python's own readers ---

TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('",\n'),
    min_size=1,
    max_size=6,
).filter(str.strip)
RECORD = st.tuples(
    TEXT,
    st.integers(0, 4_000_000_000),
    st.floats(-180, 180),
    st.floats(-90, 90),
    st.none() | TEXT,
)


@given(
    st.lists(RECORD, max_size=10),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_clean_csv_is_what_pythons_csv_reads(
    records: list[tuple], delimiter: str, line_end: str, quote_all: bool
):
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(
        text, delimiter=delimiter, lineterminator=line_end, quoting=quoting
    )
    writer.writerow(["kind", "id", "ts", "x", "y"])
    writer.writerows([kind, *values] for *values, kind in records)
    settings = stream(delimiter=delimiter, attributes={"kind": "string"})
    decoded = decode(text.getvalue().encode(), settings, arrival_us=NOW)
    read = list(
        csv.DictReader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter)
    )
    assert fixes(decoded) == [
        (
            n,
            row["id"],
            int(row["ts"]) * 1_000_000,
            float(row["x"]),
            float(row["y"]),
            False,
            row["kind"] or None,
        )
        for n, row in enumerate(read)
    ]


@given(
    st.lists(RECORD, max_size=10),
    st.sampled_from(["{}\n", "{}\r\n", "  {} \n\n"]),
    st.booleans(),
)
def test_clean_json_is_what_pythons_json_reads(
    records: list[tuple], line: str, in_array: bool
):
    values = [
        {"id": name, "ts": ts, "at": {"lon": [x]}, "lat/~y": y}
        | ({"kind": kind} if kind else {})
        for name, ts, x, y, kind in records
    ]
    text = "".join(line.format(json.dumps(value)) for value in values)
    if in_array:
        text = json.dumps(values, indent=len(values) % 2 or None)
    columns = Columns(object="id", event_ts="ts", x="at.lon[0]", y="lat/~y")
    settings = stream("ndjson", columns=columns, attributes={"kind": "string"})
    decoded = decode(text.encode(), settings, arrival_us=NOW)
    assert fixes(decoded) == [
        (
            n,
            v["id"],
            v["ts"] * 1_000_000,
            v["at"]["lon"][0],
            v["lat/~y"],
            False,
            v.get("kind"),
        )
        for n, v in enumerate(values)
    ]


# --- real data ---

AIS = stream(
    columns=Columns(object="MMSI", event_ts="# Timestamp", x="Longitude", y="Latitude"),
    time_unit="%d/%m/%Y %H:%M:%S",
    attributes={"SOG": "double", "Name": "string", "Length": "long"},
)


@pytest.mark.spec("B7")
def test_ships_around_denmark_are_what_pythons_csv_reads_without_the_750_unknown_places(
    shared: Path,
):
    payload = (
        shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
    ).read_bytes()
    decoded = decode(payload, AIS, arrival_us=NOW)
    rows = list(csv.DictReader(io.StringIO(payload.decode())))
    assert decoded.rows == len(rows) == 19_999
    assert decoded.rejects["reason"].to_pylist() == ["out_of_crs"] * 750
    assert {raw.split(b",")[3] for raw in decoded.rejects["raw"].to_pylist()} == {
        b"91.000000"
    }
    expected = [
        (
            n,
            row["MMSI"],
            int(
                datetime.strptime(row["# Timestamp"], AIS.time_unit)
                .replace(tzinfo=UTC)
                .timestamp()
            )
            * 1_000_000,
            float(row["Longitude"]),
            float(row["Latitude"]),
            False,
            float(row["SOG"]) if row["SOG"] else None,
            row["Name"] or None,
            int(row["Length"]) if row["Length"] else None,
        )
        for n, row in enumerate(rows)
        if row["Latitude"] != "91.000000"
    ]
    assert fixes(decoded) == expected
    assert len({row[1] for row in expected}) == 1_778


def test_aircraft_over_switzerland_are_what_pythons_json_reads(shared: Path):
    packed = (shared / "data" / "adsb-switzerland" / "switzerland.json.gz").read_bytes()
    columns = Columns(
        object="icao24", event_ts="timestamp", x="longitude", y="latitude"
    )
    settings = stream(
        "ndjson",
        columns=columns,
        time_unit="ms",
        attributes={"callsign": "string", "altitude": "double"},
    )
    decoded = decode(packed, settings, arrival_us=NOW)
    values = json.loads(gzip.decompress(packed))
    assert (decoded.rows, decoded.rejects.num_rows) == (139_098, 0)
    for column, key in {
        "object": "icao24",
        "x": "longitude",
        "y": "latitude",
        "callsign": "callsign",
    }.items():
        assert decoded.fixes[column].to_pylist() == [value[key] for value in values]
    assert decoded.fixes["event_ts"].to_pylist() == [
        value["timestamp"] * 1000 for value in values
    ]


@pytest.mark.spec("B7")
def test_vehicles_of_helsinki_are_read_from_nested_json(shared: Path):
    lines = (
        (shared / "data" / "hfp-helsinki" / "hfp-5000.txt").read_bytes().splitlines()
    )
    payload = b"\n".join(line[line.index(b' {"') :] for line in lines)
    columns = Columns(object="VP.veh", event_ts="VP.tst", x="VP.long", y="VP.lat")
    decoded = decode(
        payload, stream("ndjson", columns=columns, time_unit="iso"), arrival_us=NOW
    )
    values = [json.loads(line)["VP"] for line in payload.splitlines()]
    expected = [
        (n, str(v["veh"]), v["tsi"] * 1_000_000, v["long"], v["lat"], False)
        for n, v in enumerate(values)
        if v["lat"] is not None
    ]
    assert fixes(decoded) == expected
    assert decoded.rejects["reason"].to_pylist() == ["missing_position"] * 146


@pytest.mark.spec("B7")
def test_hostile_files_of_others_lose_nothing(shared: Path):
    files = [
        path
        for path in sorted((shared / "data" / "malformed").rglob("*"))
        if path.is_file()
    ]
    assert len(files) > 250
    for path in files:
        payload = path.read_bytes()[: 1 << 24]
        for settings in (stream(), stream("ndjson")):
            decoded = decode(payload, settings, arrival_us=NOW)
            check_whole(decoded, settings)
            assert decoded.fixes.num_rows == 0, "none of them holds fixes"
        if not payload.startswith((b"\x1f\x8b", b"[")):
            lines = [
                line
                for line in payload.split(b"\n")
                if line.replace(b"\xef\xbb\xbf", b"") not in (b"", b"\r")
            ]
            assert decode(payload, stream("ndjson"), arrival_us=NOW).rows == len(lines)


HUGE = b"x" * ((1 << 24) - 40)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "payload",
    [
        b'id,ts,x,y\na,1,2,"' + HUGE,
        HUGE,
        b"\n" * (1 << 23),
        b'"\n' * (1 << 17),
        b"id,ts,x,y\n" + b",\n" * (1 << 17),
    ],
    ids=["open quote", "one line", "blank lines", "quotes", "commas"],
)
def test_a_segment_of_the_largest_size_is_decoded(form: str, payload: bytes):
    decoded = decode(payload, stream(form), arrival_us=NOW)
    assert decoded.fixes.num_rows == 0
    assert np.array_equal(decoded.rejects["row"].to_numpy(), np.arange(decoded.rows))
