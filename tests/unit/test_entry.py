"""What comes in is judged alike in every format: 0, 0 is no place, and values are cleaned (SPEC X16)."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.log.record_settings import reading_of, with_reading
from st_common.spark.continuous.prepared import stream_settings

PLAIN = {"object": "id", "event_ts": "t", "x": "lon", "y": "lat"}
STATES = ("icao24", "callsign", "origin_country", "time_position", "last_contact")


def stream_of(**table) -> StreamSettings:
    keys = {"format": "csv", "columns": PLAIN, "time_unit": "s", **table}
    keys = {name: value for name, value in keys.items() if value is not None}
    return stream_of_table("s", keys, Path("streams.toml"))


def fixes(payload: bytes, stream: StreamSettings, *columns: str) -> list[tuple]:
    decoded = decode(payload, stream, arrival_us=2_000_000_000_000_000)
    return list(
        zip(*(decoded.fixes[name].to_pylist() for name in columns), strict=True)
    )


def reasons(payload: bytes, stream: StreamSettings) -> list[str]:
    decoded = decode(payload, stream, arrival_us=2_000_000_000_000_000)
    return decoded.rejects["reason"].to_pylist()


def csv(rows: list[dict]) -> bytes:
    head = ",".join(rows[0])
    return "\n".join(
        [head, *(",".join(map(str, row.values())) for row in rows)]
    ).encode()


def ndjson(rows: list[dict]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet(rows: list[dict]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def opensky(rows: list[dict]) -> bytes:
    states = [
        [row["id"], row.get("name"), "X", row["t"], row["t"], row["lon"], row["lat"]]
        for row in rows
    ]
    states = [
        [*state, 1.0, False, 2.0, 3.0, 0.0, None, 1.0, None, False, 0]
        for state in states
    ]
    return json.dumps({"time": 1, "states": states}).encode()


def geojson(rows: list[dict]) -> bytes:
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {**row, "lon": None, "lat": None},
                    "geometry": {
                        "type": "Point",
                        "coordinates": [row["lon"], row["lat"]],
                    },
                }
                for row in rows
            ],
        }
    ).encode()


OF_SKY = {
    "format": "opensky",
    "columns": {"object": "icao24", "event_ts": "time_position"},
    "time_unit": None,
}
FORMATS = {
    "csv": (csv, {}),
    "ndjson": (ndjson, {"format": "ndjson"}),
    "parquet": (parquet, {"format": "parquet"}),
    "opensky": (opensky, OF_SKY),
    "geojson": (
        geojson,
        {
            "format": "geojson",
            "columns": {"object": "properties.id", "event_ts": "properties.t"},
        },
    ),
}


def row(t: int, lon: float, lat: float, **more) -> dict:
    return {"id": "a", "t": 1_700_000_000 + t, "lon": lon, "lat": lat, **more}


@pytest.mark.spec("X16")
@pytest.mark.parametrize("name", FORMATS)
def test_exactly_0_0_is_no_place_in_degrees_whatever_the_format(name):
    write, table = FORMATS[name]
    payload = write([row(0, 11.05, 48.05), row(1, 0.0, 0.0), row(2, 0.0, 1e-9)])
    assert reasons(payload, stream_of(**table)) == ["missing_position"]
    assert fixes(payload, stream_of(**table), "y") == [(48.05,), (1e-9,)]


@pytest.mark.spec("X16")
@pytest.mark.parametrize("name", FORMATS)
def test_a_setting_takes_0_0_for_a_place(name):
    write, table = FORMATS[name]
    payload = write([row(0, 11.05, 48.05), row(1, 0.0, 0.0)])
    stream = stream_of(**table, drop_null_island=False)
    assert fixes(payload, stream, "x") == [(11.05,), (0.0,)]


@pytest.mark.spec("X16")
def test_0_0_of_a_column_of_points_is_no_place_either():
    stream = stream_of(columns={"object": "id", "event_ts": "t", "place": "p"})
    payload = b"id,t,p\na,1700000000,POINT (0 0)\na,1700000001,POINT (0 1)\n"
    assert reasons(payload, stream) == ["missing_position"]


@pytest.mark.spec("X16")
def test_on_a_plane_0_0_is_a_place_unless_a_setting_says_otherwise():
    payload = csv([row(0, 0, 0), row(1, 0, 7)])
    assert reasons(payload, stream_of(crs="planar")) == []
    assert reasons(payload, stream_of(crs="EPSG:25832")) == []
    dropping = stream_of(crs="planar", drop_null_island=True)
    assert reasons(payload, dropping) == ["missing_position"]


@pytest.mark.spec("X16")
def test_an_object_that_leaves_at_0_0_has_left_nowhere():
    stream = stream_of(columns={**PLAIN, "gone": "off"})
    payload = csv([row(0, 0, 0, off="true")])
    ((gone, x),) = fixes(payload, stream, "gone", "x")
    assert gone
    assert x != x  # noqa: PLR0124 - NaN


@pytest.mark.spec("X16")
@pytest.mark.parametrize("name", ["csv", "ndjson", "parquet", "opensky", "geojson"])
def test_blanks_around_ids_make_no_other_object(name):
    write, table = FORMATS[name]
    payload = write([row(0, 1, 1), {**row(1, 1, 1), "id": "  a\t"}])
    assert fixes(payload, stream_of(**table), "object") == [("a",), ("a",)]


@pytest.mark.spec("X16")
def test_one_number_is_one_id_however_a_file_writes_it():
    whole = parquet([{**row(0, 1, 1), "id": 219000001}])
    some = parquet([{**row(0, 1, 1), "id": 219000001.0}, {**row(1, 1, 1), "id": None}])
    of_parquet, of_csv = stream_of(format="parquet"), stream_of()
    text = csv([{**row(0, 1, 1), "id": "219000001.0"}])
    lines = ndjson([{**row(0, 1, 1), "id": 219000001.0}])
    expected = [("219000001",)]
    assert fixes(whole, of_parquet, "object") == expected
    assert fixes(some, of_parquet, "object") == expected
    assert fixes(text, of_csv, "object") == expected
    assert fixes(lines, stream_of(format="ndjson"), "object") == expected


@pytest.mark.spec("X16")
def test_large_whole_numbers_are_ids_with_all_their_digits():
    table = parquet([{**row(0, 1, 1), "id": 8612345678901234.0}])
    assert fixes(table, stream_of(format="parquet"), "object") == [
        ("8612345678901234",)
    ]


@pytest.mark.spec("X16")
@pytest.mark.parametrize("written", ["1.10", "007.0", "v1.0", "1.00", "5.5", "1e3"])
def test_ids_that_are_no_whole_numbers_stay_as_they_are_written(written):
    payload = csv([{**row(0, 1, 1), "id": written}])
    assert fixes(payload, stream_of(), "object") == [(written,)]


@pytest.mark.spec("X16")
def test_each_part_of_an_id_is_cleaned():
    stream = stream_of(columns={**PLAIN, "object": ["oper", "id"]})
    payload = csv([{**row(0, 1, 1, oper=" 18 "), "id": "640.0"}])
    assert fixes(payload, stream, "object") == [("18/640",)]


@pytest.mark.spec("X16")
@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u3000"])
def test_texts_lose_the_blanks_around_them_and_nothing_else(blank):
    stream = stream_of(attributes={"name": "string"})
    payload = csv(
        [row(0, 1, 1, name=f"{blank}SWR 12{blank}{blank}"), row(1, 1, 1, name=blank)]
    )
    assert fixes(payload, stream, "name") == [("SWR 12",), (None,)]


@pytest.mark.spec("X16")
def test_callsigns_of_state_vectors_are_trimmed():
    stream = stream_of(**OF_SKY, attributes={"callsign": "string"})
    payload = opensky([row(0, 8.5, 47.4, name="SWR12   ")])
    assert fixes(payload, stream, "callsign") == [("SWR12",)]


@pytest.mark.spec("X16", "S2")
def test_a_log_that_says_nothing_of_it_is_read_as_it_was():
    stream = stream_of(attributes={"name": "string"})
    older = {
        name: value
        for name, value in reading_of(stream).items()
        if name not in ("cleaning", "drop_null_island")
    }
    payload = csv([row(0, 0, 0, name="x "), {**row(1, 1, 1, name="y"), "id": "7.0 "}])
    before = with_reading(stream, older, where="a log")
    assert fixes(payload, before, "object", "x", "name") == [
        ("a", 0.0, "x "),
        ("7.0 ", 1.0, "y"),
    ]
    again = with_reading(before, reading_of(stream), where="a log")
    assert fixes(payload, again, "object", "name") == [("7", "y")]


@pytest.mark.spec("X16")
def test_the_setting_is_true_or_false():
    with pytest.raises(ConfigError, match="drop_null_island = 'yes'"):
        stream_of(drop_null_island="yes")


@pytest.mark.spec("X16", "S2")
def test_reading_says_nothing_of_what_is_off():
    stream = replace(stream_of(), drop_null_island=None, cleaning=0)
    assert not {"cleaning", "drop_null_island"} & reading_of(stream).keys()


@pytest.mark.spec("X16")
def test_a_frame_of_ones_own_may_take_0_0_for_a_place():
    options = {"drop_null_island": False}
    assert stream_settings("s", {}, options).drop_null_island is False
    assert stream_settings("s", {}, {}).drop_null_island is True
