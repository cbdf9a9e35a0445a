"""A stream's `where` says which records may be fixes at all (SPEC X16)."""

import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.decode.batch import Raw, decode_all
from st_common.decode.packed import from_bytes, to_bytes
from st_common.engine.packets import packets_of
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.log.record_settings import log_for, reading_of, with_reading
from st_common.operations.status import read_status
from st_common.replay.files import replay
from st_common.replay.tally import Tally
from tests.kit.effort import tries

NOW = 1_800_000_000_000_000
START = 1_700_000_000
COLUMNS = {"object": "id", "event_ts": "t", "x": "lon", "y": "lat"}
KINDS = ["location", "waypoint", "", None, " location ", "LOCATION"]
VALIDS = [True, False, None]
SHAPES = {"csv": {}, "ndjson": {"format": "ndjson"}, "parquet": {"format": "parquet"}}


def stream_of(where: str | None = None, **table) -> StreamSettings:
    keys = {"format": "csv", "columns": COLUMNS, "time_unit": "s", **table}
    if where is not None:
        keys["where"] = where
    return stream_of_table("s", keys, Path("streams.toml"))


def row(number: int, **more) -> dict:
    fix = {"id": f"o{number % 3}", "t": START + number, "lon": 1.5, "lat": 2.5}
    return {**fix, "kind": "location", "valid": True, "acc": 5.0, **more}


def written(rows: list[dict], form: str) -> bytes:
    if form == "ndjson":
        return b"".join(json.dumps(one).encode() + b"\n" for one in rows)
    if form == "parquet":
        kinds = {"id": "string", "kind": "string", "valid": "bool_", "t": "int64"}
        schema = pa.schema(
            [(n, getattr(pa, kinds.get(n, "float64"))()) for n in rows[0]]
        )
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
        return sink.getvalue()
    lines = [
        ",".join("" if value is None else str(value) for value in one.values())
        for one in rows
    ]
    return "\n".join([",".join(rows[0]), *lines]).encode()


def decoded(rows: list[dict], stream: StreamSettings, form: str = "csv"):
    return decode(written(rows, form), stream, arrival_us=NOW)


def times(decoded) -> list[int]:
    return [at // 1_000_000 - START for at in decoded.fixes["event_ts"].to_pylist()]


@pytest.mark.spec("X16")
@pytest.mark.parametrize("form", SHAPES)
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("kind = 'location'", [0, 1, 2]),
        ("kind = 'location' AND valid", [0, 2]),
        ("valid = TRUE", [0, 2, 3]),
        ("NOT valid", [1]),
        ("valid IS NOT NULL", [0, 1, 2, 3]),
        ("valid IS NOT TRUE", [1, 4]),
        ("acc < 10 OR kind = 'waypoint'", [0, 1, 3]),
        ("kind <> 'waypoint'", [0, 1, 2]),
        ("kind IS NULL", [4]),
        ("UPPER(kind) LIKE 'LOC%'", [0, 1, 2]),
        ("ABS(acc - 7) <= 2", [0, 1, 3]),
        ("acc BETWEEN 5 AND 30 AND kind IN ('location', 'x')", [0, 1, 2]),
        ("COALESCE(acc, 0) = 0", [4]),
        ("CAST(acc AS BIGINT) = 25", [2]),
        ("id = 'o1'", [1, 4]),
    ],
)
def test_what_a_condition_is_not_true_of_is_filtered_out(form, where, kept):
    rows = [
        row(0),
        row(1, valid=False),
        row(2, acc=25.0),
        row(3, kind="waypoint"),
        row(4, kind=None, valid=None, acc=None),
    ]
    found = decoded(rows, stream_of(where, **SHAPES[form]), form)
    assert times(found) == kept
    assert found.rejects["reason"].to_pylist() == ["filtered_out"] * (5 - len(kept))
    assert found.rows == 5


@pytest.mark.spec("X16")
def test_paths_are_columns_in_quotes():
    rows = [
        row(0, attributes={"motion": True, "hdop": [0.5]}),
        row(1, attributes={"motion": False, "hdop": [0.5]}),
        row(2, attributes={"motion": True, "hdop": [9]}),
        row(3),
    ]
    where = '"attributes.motion" AND "attributes.hdop[0]" < 2'
    found = decoded(rows, stream_of(where, format="ndjson"), "ndjson")
    assert times(found) == [0]


@pytest.mark.spec("X16")
def test_columns_without_a_header_are_numbers():
    payload = b"a,1700000000,1,2,A\na,1700000001,1,2,V\n"
    columns = {"object": 1, "event_ts": 2, "x": 3, "y": 4}
    stream = stream_of("\"5\" = 'A'", header=False, columns=columns)
    assert times(decode(payload, stream, arrival_us=NOW)) == [0]


@pytest.mark.spec("X16")
def test_records_are_counted_by_the_clause_that_stops_them():
    rows = [
        row(0),
        row(1, kind="x"),
        row(2, kind="x", valid=False),
        row(3, valid=False),
    ]
    found = decoded(rows, stream_of("kind = 'location' AND (valid OR acc > 9)"))
    assert found.filtered_out == {"kind = 'location'": 2, "valid OR acc > 9": 1}


@pytest.mark.spec("X16")
def test_the_filter_comes_before_all_that_is_judged():
    rows = [row(0), row(1, kind="x", id="", t="never", lon="far", lat=None)]
    found = decoded(rows, stream_of("kind = 'location'"))
    assert found.rejects["reason"].to_pylist() == ["filtered_out"]


@pytest.mark.spec("X16")
def test_words_for_missing_values_are_missing_to_the_filter_too():
    rows = [row(0), row(1, kind="NA")]
    assert times(decoded(rows, stream_of("kind IS NOT NULL", nulls=["NA"]))) == [0]


@pytest.mark.spec("X16")
def test_one_record_that_cannot_be_evaluated_fails_no_other():
    rows = [row(0, acc="5"), row(1, acc="much"), row(2, acc="6")]
    where = "CAST(acc AS DOUBLE) > 1"
    assert times(decoded(rows, stream_of(where))) == [0, 2]


@pytest.mark.spec("X16")
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("kind = ", "expected"),
        ("FOO(kind) = 'x'", "unknown function FOO"),
        ("attributes.motion", "attributes.motion is no column of a record"),
        ("kind = 'x' AND COUNT(*) > 3", "COUNT"),
        ("speed > 30 km/h", "a number with a unit"),
        ("acc < hdop", "columns of an unknown type have no order"),
        ("UPPER(kind)", "no condition"),
        ("HOUR(t) > 3", "no function matches"),
        ("mmsi = 92233720368547758079", "too large"),
        ("H3_CELL(lon, lat, 9) = 'a'", "H3_CELL has no place here"),
        ("EXISTS (SELECT 1 FROM roads WHERE ST_Intersects(a, b))", "EXISTS"),
        ("kind = 'x'; DROP TABLE records", "an expression has no ';'"),
        ("kind = 'x", "not closed"),
        ("1 = 1", "it names no column of a record"),
        ("REGEXP_MATCHES(kind, '(')", "missing )"),
    ],
)
def test_a_condition_that_is_wrong_is_an_error_of_one_line_that_names_its_place(
    where, said
):
    with pytest.raises(ConfigError) as caught:
        stream_of(where)
    assert said in caught.value.message
    assert caught.value.message.startswith("streams.toml: stream 's': where = ")
    assert "\n" not in caught.value.message


@pytest.mark.spec("X16")
def test_a_column_that_the_format_does_not_have_is_an_error():
    columns = {"object": "mmsi", "event_ts": "time", "x": "longitude", "y": "latitude"}
    with pytest.raises(ConfigError, match="typ"):
        stream_of_table(
            "s",
            {"format": "ais", "columns": columns, "where": "typ <> 4"},
            Path("streams.toml"),
        )


@pytest.mark.spec("X16", "S2")
def test_the_log_says_by_which_filter_its_records_are_read():
    stream = stream_of("kind = 'location' AND valid")
    reading = json.loads(json.dumps(reading_of(stream)))
    assert with_reading(stream_of(), reading, where="a log").where == stream.where
    assert "where" not in reading_of(stream_of())


@pytest.mark.spec("X16")
def test_packets_keep_what_was_counted():
    stream = stream_of("valid")
    found = decoded([row(0), row(1, valid=False)], stream)
    again = from_bytes(to_bytes(found), stream, arrival_us=NOW, where="here")
    assert again.filtered_out == {"valid": 1}
    assert again.fixes.equals(found.fixes)


@pytest.mark.spec("X16")
def test_many_that_are_filtered_out_do_not_make_a_file_unreadable():
    stream, tally = stream_of("kind = 'location'"), Tally()
    payload = written([row(0)] + [row(n, kind="x") for n in range(1, 50)], "csv")
    tally.add(payload, payload[:10], stream, arrival_us=NOW)
    assert not tally.is_mostly_rejected


@pytest.mark.spec("X16")
def test_a_filter_that_lets_nothing_in_is_told():
    stream, tally = stream_of("kind = 'locations'"), Tally()
    payload = written([row(0), row(1)], "csv")
    tally.add(payload, payload[:10], stream, arrival_us=NOW)
    assert tally.is_mostly_rejected
    assert "where lets none of them in" in tally.mend(stream)


def test_a_stream_without_a_filter_imports_neither_parser_nor_database():
    code = (
        "import sys; from pathlib import Path; from st_common.config.streams import stream_of_table;"
        "from st_common.decode import decode;"
        "s = stream_of_table('s', {'format': 'csv', 'time_unit': 's', 'columns': "
        "{'object': 'id', 'event_ts': 't', 'x': 'x', 'y': 'y'}}, Path('a'));"
        "decode(b'id,t,x,y\\na,1,2,3\\n', s, arrival_us=9);"
        "print([name for name in ('duckdb', 'sqlglot') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


ROWS = st.lists(
    st.builds(
        lambda number, kind, valid: row(number, kind=kind, valid=valid),
        st.integers(0, 99),
        st.sampled_from(KINDS),
        st.sampled_from(VALIDS),
    ),
    min_size=1,
    max_size=12,
)


def is_let_in(one: dict) -> bool:
    return (one["kind"] or "").strip() == "location" and one["valid"] is True


def kept_of(parts) -> list[tuple]:
    columns = ("object", "event_ts", "x", "y")
    return [
        values
        for part in parts
        for values in zip(
            *(part.decoded.fixes[name].to_pylist() for name in columns), strict=True
        )
    ]


@pytest.mark.spec("X16")
@tries(60)
@given(ROWS, st.sampled_from(["csv", "ndjson"]), st.integers(1, 4))
def test_a_stream_with_junk_that_is_filtered_is_the_stream_without_it(rows, form, size):
    stream = stream_of("kind = 'location' AND valid", **SHAPES[form])
    plain = replace(stream, where=None)
    cut = [rows[at : at + size] for at in range(0, len(rows), size)]
    good = [[one for one in some if is_let_in(one)] for some in cut]
    filtered = kept_of(
        decode_all(
            [Raw(payload=written(some, form), arrival_us=NOW) for some in cut], stream
        )
    )
    without = kept_of(
        decode_all(
            [Raw(payload=written(some, form), arrival_us=NOW) for some in good if some],
            plain,
        )
    )
    assert Counter(filtered) == Counter(without)
    assert filtered == without


@pytest.mark.spec("X16")
@pytest.mark.parametrize("codec", ["raw", "packet"])
def test_a_run_and_the_status_say_which_clause_stopped_how_many(tmp_path, codec):
    home = Home(tmp_path / "home")
    stream = stream_of("kind = 'location' AND valid", engine="local", codec=codec)
    rows = [row(n, valid=n % 2 == 0) for n in range(3000)]
    path = tmp_path / "fixes.csv"
    path.write_bytes(written([*rows, row(3000, kind="waypoint")], "csv"))
    replay(log_for(home, stream), path, stream)
    summary = run(home, stream, until_idle=True)
    counted = {"valid": 1500, "kind = 'location'": 1}
    assert summary.filtered_out == counted
    assert (summary.fixes, summary.rejects) == (1500, 1501)
    run(home, stream, until_idle=True)
    assert read_status(home.stream("s")).filtered_out == counted


def csv_of(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


def json_of(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


GPX = b"""<?xml version="1.0"?>
<gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1"><trk><name>a</name><trkseg>
<trkpt lat="2" lon="1"><ele>5</ele><time>2023-11-14T22:13:20Z</time></trkpt>
<trkpt lat="2" lon="1"><ele>900</ele><time>2023-11-14T22:13:21Z</time></trkpt>
</trkseg></trk></gpx>
"""
RMC = "$GPRMC,2213{}.00,A,0200.0000,N,00100.0000,E,{},0.0,141123,,,A*"


def nmea(second: str, knots: str) -> str:
    line = RMC.format(second, knots)
    total = 0
    for byte in line[1:-1].encode():
        total ^= byte
    return f"{line}{total:02X}"


AIS = (
    "1700000000 !AIVDM,1,1,,B,177KQJ5000G?tO`K>RA1wUbN0TKH,0*5C",
    "1700000001 !AIVDM,1,1,,A,13HOI:0P0000VOHLCnHQKwvL05Ip,0*23",
)
SBS = (
    "MSG,3,1,1,4CA2D6,1,2023/11/14,22:13:20.000,2023/11/14,22:13:20.000,,37000,,,2.0,1.0,,,0,0,0,0",
    "MSG,3,1,1,4CA2D7,1,2023/11/14,22:13:20.000,2023/11/14,22:13:20.000,,900,,,2.0,1.0,,,0,0,0,0",
)
TRACCAR = [
    {
        "deviceId": number,
        "fixTime": "2023-11-14T22:13:20Z",
        "latitude": 2.0,
        "longitude": 1.0,
        "speed": knots,
    }
    for number, knots in ((1, 5.0), (2, 90.0))
]
OWNTRACKS = [
    {"_type": "location", "tid": tid, "lat": 2.0, "lon": 1.0, "tst": START, "acc": acc}
    for tid, acc in (("a", 5), ("b", 900))
]
VEHICLES = {
    "header": {"gtfs_realtime_version": "2.0", "timestamp": START},
    "entity": [
        {
            "id": vehicle,
            "vehicle": {
                "vehicle": {"id": vehicle},
                "trip": {"route_id": route},
                "position": {"latitude": 2.0, "longitude": 1.0},
                "timestamp": START,
            },
        }
        for vehicle, route in (("a", "7"), ("b", "8"))
    ],
}
MOVEBANK = csv_of(
    "event-id,visible,timestamp,location-long,location-lat,individual-local-identifier",
    "1,true,2023-11-14 22:13:20.000,1,2,stork",
    "2,false,2023-11-14 22:13:21.000,1,2,stork",
)
ELSEWHERE = {
    "traccar": (
        {"format": "traccar", "columns": {"object": "deviceId", "event_ts": "fixTime"}},
        "speed < 50",
        json_of(TRACCAR),
    ),
    "owntracks": (
        {"format": "owntracks", "columns": {"object": "tid", "event_ts": "tst"}},
        "acc < 100",
        json_of(*OWNTRACKS),
    ),
    "gpx": (
        {"format": "gpx", "columns": {"object": "trk/name", "event_ts": "time"}},
        "ele < 100",
        GPX,
    ),
    "nmea": (
        {"format": "nmea", "columns": {"object": "device", "event_ts": "time"}},
        "speed < 50",
        csv_of(nmea("20", "5.0"), nmea("21", "90.0")),
    ),
    "ais": (
        {"format": "ais", "columns": {"object": "mmsi", "event_ts": "time"}},
        "mmsi = 477553000",
        csv_of(*AIS),
    ),
    "sbs1": (
        {"format": "sbs1", "columns": {"object": "hex", "event_ts": "time"}},
        "altitude > 1000",
        csv_of(*SBS),
    ),
    "gtfs-rt": (
        {
            "format": "gtfs-rt",
            "columns": {"object": "vehicle_id", "event_ts": "timestamp"},
        },
        "route_id = '7'",
        json_of(VEHICLES),
    ),
    "movebank": (
        {
            "columns": {
                "object": "individual-local-identifier",
                "event_ts": "timestamp",
                "x": "location-long",
                "y": "location-lat",
            },
            "time_unit": "iso",
        },
        "visible",
        MOVEBANK,
    ),
    "ndjson": (
        {"format": "ndjson", "columns": COLUMNS, "time_unit": "s"},
        "acc < 100",
        json_of(row(0), row(1, acc=900.0)),
    ),
}


@pytest.mark.spec("X16")
@pytest.mark.parametrize("which", ELSEWHERE)
def test_every_format_lets_in_what_its_own_columns_say(which):
    table, where, payload = ELSEWHERE[which]
    table = {"format": "csv", **table}
    plain = stream_of_table("s", table, Path("streams.toml"))
    whole = decode(payload, plain, arrival_us=NOW)
    assert (len(whole.fixes), len(whole.rejects)) == (2, 0), whole.rejects.to_pylist()
    stream = stream_of_table("s", {**table, "where": where}, Path("streams.toml"))
    done = decode(payload, stream, arrival_us=NOW)
    assert done.rejects["reason"].to_pylist() == ["filtered_out"]
    (fix,) = done.fixes.to_pylist()
    assert fix in whole.fixes.to_pylist()


@pytest.mark.spec("X16")
@tries(25)
@given(ROWS, st.integers(1, 4), st.integers(1, 4))
def test_what_is_filtered_out_moves_nobody_in_any_shard(
    tmp_path_factory, rows, shards, size
):
    """Each shard gets the fixes that it gets of the stream without the junk, and the same clock."""
    stream = stream_of("kind = 'location' AND valid")
    cut = [rows[at : at + size] for at in range(0, len(rows), size)]
    good = [[one for one in some if is_let_in(one)] for some in cut]
    dealt = []
    for parts, settings_ in ((cut, stream), (good, replace(stream, where=None))):
        log = log_for(Home(tmp_path_factory.mktemp("home")), settings_)
        for some in filter(None, parts):
            log.append(written(some, "csv"), arrival_us=NOW)
        packets = packets_of(log, log.segments(0), settings_, shards=shards)
        dealt.append(in_shards(packets, shards))
    assert dealt[0] == dealt[1]
    there = {fix for fixes, _ in dealt[0] for fix in fixes}
    assert {(name, at // 1_000_000) for name, at, _, _ in there} == {
        (one["id"], one["t"]) for some in good for one in some
    }


def in_shards(packets, shards: int) -> list[tuple[list, list]]:
    """Of each shard its fixes in their order, and what its clock grows to."""
    told = [([], []) for _ in range(shards)]
    for dealt in packets:
        for (fixes, clocks), packet in zip(told, dealt, strict=True):
            objects = packet.objects.take(pa.array(packet.code)).to_pylist()
            values = (packet.ts.tolist(), packet.x.tolist(), packet.y.tolist())
            fixes.extend(zip(objects, *values, strict=True))
            clocks.extend(packet.clock_max.tolist())
    return [(fixes, np.maximum.accumulate(clocks).tolist()) for fixes, clocks in told]
