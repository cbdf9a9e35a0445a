"""Settings of text formats: ids and times of several columns, nested fields, points in one column, lines to skip."""

import gzip
import io
import json
import struct
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.decode.points import points_of
from st_common.errors import ConfigError
from st_common.log.record_settings import reading_of, with_reading
from st_common.replay.chunks import chunks
from tests.kit.effort import tries

WHERE = Path("streams.toml")
NOW = 1_800_000_000_000_000
CSV = {"format": "csv", "columns": {"object": "id", "x": "x", "y": "y"}}


def stream(**table) -> StreamSettings:
    return stream_of_table("s", {"max_ahead_s": "off", **table}, WHERE)


def read(content: bytes, settings: StreamSettings):
    """The fixes and the counts of reasons of a file: cut as a replay does, each segment decoded."""
    fixes, reasons, records = [], {}, 0
    for chunk in chunks(io.BytesIO(content), settings, size=1 << 20):
        decoded = decode(chunk.payload(0, len(chunk.spans)), settings, arrival_us=NOW)
        assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
        records += len(chunk.spans)
        fixes.append(decoded.fixes)
        for reason in decoded.rejects["reason"].to_pylist():
            reasons[reason] = reasons.get(reason, 0) + 1
    return pa.concat_tables(fixes), reasons, records


@pytest.mark.spec("B7")
def test_vehicles_of_helsinki_are_named_by_operator_and_vehicle(shared):
    """The payloads of the feed, nested in VP; trains name no operator, and 60 of the others have no place."""
    text = (shared / "data" / "hfp-helsinki" / "hfp-5000.txt").read_text("utf-8")
    payloads = [line[line.index(' {"') :] for line in text.splitlines()]
    settings = stream(
        format="ndjson",
        columns={
            "object": ["VP.oper", "VP.veh"],
            "event_ts": "VP.tst",
            "x": "VP.long",
            "y": "VP.lat",
            "speed": "VP.spd",
        },
        attributes={"speed": "double m/s"},
    )
    fixes, reasons, records = read("\n".join(payloads).encode(), settings)
    assert records == 5000
    assert reasons == {"missing_object": 680, "missing_position": 60}
    assert len(fixes) == 4260
    own = [json.loads(line)["VP"] for line in payloads]
    named = {f"{vp['oper']}/{vp['veh']}" for vp in own if vp["oper"] and vp["lat"]}
    assert set(fixes["object"].to_pylist()) == named
    speeds = [vp["spd"] for vp in own if vp["oper"] and vp["lat"]]
    assert fixes["speed"].to_pylist() == speeds


@pytest.mark.spec("B7")
def test_people_of_beijing_come_with_date_and_time_in_two_columns(shared):
    """The same file with the time cut in two, and two lines in front, gives the same 217,653 fixes of two people."""
    file = shared / "data" / "gps-geolife-beijing" / "geolife_sample.txt.gz"
    content = gzip.decompress(file.read_bytes())
    columns = {"object": "uid", "event_ts": "datetime", "x": "lng", "y": "lat"}
    fixes, reasons, records = read(content, stream(format="csv", columns=columns))
    assert (len(fixes), reasons, records) == (217_653, {}, 217_653)
    assert pc.unique(fixes["object"]).to_pylist() == ["001", "005"]
    halves = content.replace(b"datetime", b"date,time").replace(b" ", b",")
    settings = stream(
        format="csv",
        columns={**columns, "event_ts": ["date", "time"]},
        skip_lines=2,
    )
    again, reasons, _ = read(b"Geolife\n\xff, 2008\n" + halves, settings)
    assert reasons == {}
    assert again["event_ts"].equals(fixes["event_ts"])


@pytest.mark.spec("B7")
def test_ships_of_denmark_have_days_first_and_some_have_no_place(shared):
    file = shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
    settings = stream(
        format="csv",
        columns={
            "object": ["Type of mobile", "MMSI"],
            "event_ts": "# Timestamp",
            "x": "Longitude",
            "y": "Latitude",
            "sog": "SOG",
        },
        time_unit="%d/%m/%Y %H:%M:%S",
        attributes={"sog": "double kn"},
    )
    fixes, reasons, records = read(file.read_bytes(), settings)
    assert (records, reasons) == (19_999, {"out_of_crs": 750})
    ships = {one.partition("/")[2] for one in fixes["object"].to_pylist()}
    assert len(ships) == 1778
    assert pc.min(fixes["x"]).as_py() == pytest.approx(5.01384, abs=1e-5)
    assert pc.max(fixes["y"]).as_py() == pytest.approx(59.45826, abs=1e-5)


@pytest.mark.spec("B7")
def test_berlinmod_needs_no_format_of_its_own(shared):
    """Its instants as CSV, and the same as points of WKT and of PostGIS's WKB, are the same 85,422 fixes."""
    file = shared / "data" / "berlinmod-brussels" / "berlinmod_instants.csv.gz"
    content = gzip.decompress(file.read_bytes())
    columns = {"object": ["vehid", "tripid"], "event_ts": "t"}
    plain = stream(format="csv", columns={**columns, "x": "lon", "y": "lat"})
    fixes, reasons, _ = read(content, plain)
    assert (len(fixes), reasons) == (85_422, {})
    assert pc.unique(fixes["object"])[:2].to_pylist() == ["1/1", "2/2"]
    head, *lines = content.decode().splitlines()
    rows = [line.rsplit(",", 2) for line in lines]
    points = shapely.points([[float(x), float(y)] for _, x, y in rows])
    wkb = shapely.to_wkb(shapely.set_srid(points, 4326), hex=True, include_srid=True)
    placed = stream(format="tsv", columns={**columns, "place": "geom"})
    for texts in ([f"POINT({x} {y})" for _, x, y in rows], wkb):
        table = [head.replace("lon,lat", "geom")]
        table += [f"{row[0]},{text}" for row, text in zip(rows, texts, strict=True)]
        again, reasons, _ = read("\n".join(table).replace(",", "\t").encode(), placed)
        assert reasons == {}
        for name in ("event_ts", "x", "y"):
            assert again[name].equals(fixes[name])


WKT = {
    "POINT (1 2)": (1.0, 2.0),
    " point z(1.5 -2e0 7) ": (1.5, -2.0),
    "POINTZM(1 2 3 4)": (1.0, 2.0),
    "SRID=4326;POINT(1 2)": (1.0, 2.0),
    "SRID=3857;POINT(1 2)": "out_of_crs",
    "POINT EMPTY": "missing_position",
    "": "missing_position",
    "POINT (1 b)": "bad_number",
    "POINT (1 91)": "out_of_crs",
    "POINT (1)": "no_point",
    "POINT (1, 2)": "no_point",
    "LINESTRING (1 2, 3 4)": "no_point",
    "POLYGON EMPTY": "no_point",
    "here": "no_point",
    shapely.to_wkb(shapely.Point(1, 2), hex=True): (1.0, 2.0),
    shapely.to_wkb(shapely.Point(1, 2, 3), hex=True, byte_order=0): (1.0, 2.0),
    shapely.to_wkb(shapely.Point(), hex=True): "missing_position",
    shapely.to_wkb(shapely.LineString([(1, 2), (3, 4)]), hex=True): "no_point",
    shapely.to_wkb(shapely.MultiPoint([(1, 2)]), hex=True)[:42]: "no_point",
}


@pytest.mark.spec("B7")
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_a_place_is_a_point_or_a_reject_with_its_reason(form):
    settings = stream(format=form, columns={"object": "id", "place": "geom"})
    lines = [json.dumps({"id": "a", "geom": text}) for text in WKT]
    if form == "csv":
        lines = ["id,geom", *(f'a,"{text}"' for text in WKT)]
    decoded = decode("\n".join(lines).encode(), settings, arrival_us=NOW)
    fixes = {row["row"]: (row["x"], row["y"]) for row in decoded.fixes.to_pylist()}
    why = {row["row"]: row["reason"] for row in decoded.rejects.to_pylist()}
    assert fixes | why == dict(enumerate(WKT.values()))


@given(
    st.lists(
        st.binary(max_size=60)
        | st.floats(-180, 180).map(
            lambda x: b"\x01" + struct.pack("<Idd", 1, x, -x / 2)
        )
    )
)
@tries(100)
def test_whatever_the_bytes_are_they_are_a_point_or_not(values):
    points = points_of(pa.array(values, pa.binary()), epsg=4326)
    for row, value in enumerate(values):
        if not (points.other[row] or points.elsewhere[row] or points.x.missing[row]):
            known = shapely.from_wkb(value, on_invalid="ignore")
            if known is not None:
                assert (points.x.values[row], points.y.values[row]) == (
                    known.x,
                    known.y,
                )
    texts = [value.hex() for value in values]
    again = points_of(pa.array(texts, pa.string()), epsg=4326)
    assert len(again.x.values) == len(values)


@given(st.lists(st.text(max_size=40), min_size=1))
def test_whatever_the_text_is_it_is_a_point_or_not(texts):
    points = points_of(pa.array(texts, pa.string()), epsg=0)
    assert (points.other | points.x.missing).all() or any(
        "oint" in t.lower() for t in texts
    )


@pytest.mark.parametrize("skipped", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("ends", [b"", b"\n"])
def test_lines_are_skipped_however_long_they_are(skipped, ends):
    columns = {"object": "id", "x": "x", "y": "y"}
    settings = stream(format="ndjson", columns=columns, skip_lines=skipped)
    given_lines = [b"1" * 300_000, b"2", b"3" * 700_000, b"4"]
    content = b"\n".join(given_lines) + ends
    pieces = chunks(io.BytesIO(content), settings, size=1 << 20)
    payloads = b"".join(one.payload(0, len(one.spans)) for one in pieces)
    assert payloads.splitlines() == given_lines[skipped:]


def test_a_byte_order_mark_and_blank_lines_in_front_are_no_trouble():
    settings = stream(**CSV, skip_lines=1)
    fixes, reasons, _ = read(b"\xef\xbb\xbftitle\r\n\r\nid,x,y\r\na,1,2\r\n", settings)
    assert (fixes["object"].to_pylist(), reasons) == (["a"], {})


def test_half_an_id_is_none():
    settings = stream(
        format="csv", columns={"object": ["a", "b"], "x": "x", "y": "y"}, nulls=["NA"]
    )
    decoded = decode(b"a,b,x,y\n1,2,1,1\n1,,1,1\nNA,2,1,1\n", settings, arrival_us=NOW)
    assert decoded.fixes["object"].to_pylist() == ["1/2"]
    assert decoded.rejects["reason"].to_pylist() == ["missing_object"] * 2


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"columns": {"object": "id"}}, "columns: x is missing"),
        (
            {"columns": {"object": "id", "x": "x", "place": "p", "y": "y"}},
            "beside place",
        ),
        ({"columns": {"object": [], "x": "x", "y": "y"}}, "must be columns"),
        ({"columns": {"object": ["a", "a"], "x": "x", "y": "y"}}, "must be columns"),
        ({"columns": {"object": "a", "x": "x", "y": "y", "speed": "v"}}, "unknown key"),
        ({"skip_lines": -1}, "whole number"),
        (
            {"format": "gpx", "columns": {"object": "name"}, "skip_lines": 1},
            "no meaning",
        ),
        (
            {"format": "ais", "columns": {"object": "mmsi"}, "time_unit": "s"},
            "time_unit has no meaning for ais",
        ),
        (
            {"format": "gtfs-rt", "columns": {"object": "id"}, "time_unit": "iso"},
            "time_unit has no meaning for gtfs-rt",
        ),
        *(
            (
                {"format": form, "columns": {"object": "id"}, "crs": "planar"},
                f"crs = 'planar', but {form} is in EPSG:4326",
            )
            for form in ("ais", "gtfs-rt", "sbs1", "opensky", "gpx")
        ),
        (
            {
                "columns": {"object": "a", "x": "x", "y": "y", "event_ts": ["d", "t"]},
                "time_unit": "s",
            },
            "of a date and a time",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(table, message):
    with pytest.raises(ConfigError, match=message):
        stream(**{**CSV, **table})


def test_an_attribute_may_be_called_as_a_field_that_is_no_key():
    columns = {"object": "id", "x": "x", "y": "y", "object_value": "v"}
    settings = stream(
        format="csv", columns=columns, attributes={"object_value": "string"}
    )
    assert settings.columns.object_value is None
    assert settings.columns.of_attribute("object_value") == "v"


def test_gpx_knows_its_coordinates_itself():
    settings = stream(format="gpx", columns={"object": "trk/name"})
    assert (settings.columns.x, settings.columns.y) == ("lon", "lat")


@pytest.mark.spec("B7")
def test_how_records_are_read_stands_in_the_log_and_older_logs_read_the_same():
    older = StreamSettings(
        name="s", format="csv", columns=Columns(object="id", x="x", y="y")
    )
    said = reading_of(older)
    assert said["columns"] == {
        "object": "id",
        "event_ts": None,
        "x": "x",
        "y": "y",
        "gone": None,
        "gone_values": ["true", "1"],
    }
    assert "skip_lines" not in said
    newer = stream(
        format="ndjson",
        columns={
            "object": ["VP.oper", "VP.veh"],
            "event_ts": ["date", "time"],
            "place": "geom",
            "speed": "VP.spd",
        },
        attributes={"speed": "double"},
    )
    back = with_reading(older, json.loads(json.dumps(reading_of(newer))), where="7")
    assert back.columns == newer.columns
    assert with_reading(newer, said, where="7").columns == older.columns


def test_the_streams_of_the_page_about_files_are_right():
    page = Path(__file__).resolve().parents[2] / "docs" / "file-formats.md"
    blocks = page.read_text(encoding="utf-8").split("```toml\n")[1:]
    names = []
    for block in blocks:
        for name, table in tomllib.loads(block.partition("```")[0])["streams"].items():
            stream_of_table(name, table, page)
            names.append(name)
    assert {"buses", "people", "trips", "cars", "planes"} <= set(names)
