"""`fairway check`: what real files are, and what stands in the way of those that cannot be read."""

import contextlib
import gzip
import http.server
import json
import re
import shlex
import socket
import threading
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.streams import load_streams
from st_common.detect.columns import guessed
from st_common.detect.form import form_of
from st_common.detect.head import read_head
from st_common.detect.report import detect, source_to_toml
from st_common.errors import ConfigError, FairwayError, TransientError

pytestmark = pytest.mark.spec("B6", "B7")


@pytest.mark.parametrize(
    ("file", "form", "owner", "time_unit", "crs"),
    [
        ("ais-denmark/aisdk-2026-04-26-first20000.csv", "csv", "MMSI", "%d/%m/%Y %H:%M:%S", None),
        ("ais-denmark/nmea-stream-2010-06-11.txt", "ais", "mmsi", None, None),
        ("adsb-sbs1-ulm/sbs1.txt", "sbs1", "hex", None, None),
        ("adsb-switzerland/switzerland.json.gz", "ndjson", "icao24", "ms", None),
        ("berlinmod-brussels/berlinmod_instants.csv.gz", "csv", "vehid", "iso", None),
        ("gps-geolife-beijing/geolife_sample.txt.gz", "csv", "uid", "iso", None),
        ("gtfsrt-kingcounty/king-county-metro-1.pb", "gtfs-rt", "vehicle_id", None, None),
        ("gtfsrt-riga/riga_vehicle_positions.parquet", "parquet", "vehicle_id", "s", None),
        ("hfp-helsinki/hfp-5000.txt", "hfp", ["operator_id", "vehicle_number"], None, None),
        ("polygons-naturalearth/ne_10m_ports.geojson", "geojson", "name", None, None),
    ],
)  # fmt: skip
def test_real_files_are_known_and_read(shared, file, form, owner, time_unit, crs):
    seen = detect(str(shared / "data" / file))
    assert seen.table["format"] == form
    assert seen.table["columns"]["object"] == owner
    assert seen.table.get("time_unit") == time_unit
    assert seen.table.get("crs") == crs
    assert seen.is_readable
    assert seen.good + sum(seen.reasons.values()) == seen.records
    assert len(seen.fixes) == 5


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("id;t;x;y\na;1700000000;10;50\n", {"delimiter": ";", "time_unit": "s"}),
        ("made by a tool\n\nid,t,lon,lat\na,1700000000000,10,50\n", {"skip_lines": 2, "time_unit": "ms"}),
        ("a,2024-05-01T12:00:00Z,10.5,50.5\nb,2024-05-01T12:00:00Z,10.5,50.5\n",
         {"header": False, "columns": {"x": "4", "y": "3", "event_ts": "2", "object": "1"}}),
        ("id,lat,lon\na,120,50\nb,121,51\n", {"columns": {"x": "lat", "y": "lon", "object": "id"}}),
        ("id,t,x,y\na,1,456123,5432100\n", {"crs": "planar"}),
        ("id,date,time,x,y\na,01/05/2024,12:00:00,1,2\n", {"time_unit": "%d/%m/%Y %H:%M:%S"}),
        ("id\tt\tgeom\na\t1700000000\tPOINT (1 2)\n", {"format": "tsv"}),
        ("id;t;geom\na;1700000000;LINESTRING (1 2, 3 4)\nb;1700000000;POINT (1 2)\n",
         {"columns": {"object": "id", "event_ts": "t", "shape": "geom"}}),
        ("note,id,t,x,y\n,a,1700000000,10,50\n", {"columns": {"object": "id", "event_ts": "t", "x": "x", "y": "y"}}),
        ('/hfp/v2/journey/ongoing/vp/bus/1/6 {"VP": {"tst": "2024-05-01", "lat": 6, "long": 2}}\n', {"format": "hfp"}),
        ('{"VP": {"veh": 7, "lat": 60, "long": 24, "tst": "2024-05-01T12:00:00Z"}}\n', {"time_unit": "iso"}),
        ('{"vehicles": [{"id": "a", "ts": 1700000000, "lon": 10, "lat": 50}]}',
         {"records": "vehicles", "columns": {"x": "lon", "y": "lat", "event_ts": "ts", "object": "id"}}),
        ('{"id": "a", "ts": 1700000000, "lon": 10, "lat": 50, "stops": [{"n": 1}]}\n' * 2, {"records": None}),
        ('{"id": "a", "ts": 1700000000, "lon": 10, "lat": 50, "stops": [{"n": 1}]}\n', {"records": None}),
        ('{"agencies": [{"n": 1}], "vehicles": [{"id": "a", "ts": 1700000000, "lon": 10, "lat": 50}]}',
         {"records": "vehicles"}),
    ],
)  # fmt: skip
def test_settings_follow_from_what_stands_in_a_file(tmp_path, text, settings):
    path = tmp_path / "file"
    path.write_text(text)
    told = CliRunner().invoke(app, ["--home", str(tmp_path), "check", str(path)])
    assert told.exit_code == 0, told.output
    seen = detect(str(path))
    assert {key: seen.table.get(key) for key in settings} == settings
    assert seen.good == seen.records > 0


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "is empty"),
        (b"<osm></osm>", "is XML, and no GPX"),
        (b"\x00\x01\x02" * 100, "is binary"),
        (b"one word\n", "text without fields"),
        (b'["a", "b"]', "JSON without objects"),
        (gzip.compress(b"id,t,x,y\n" * 50)[:-30] + b"x" * 30, "is packed, and broken"),
        (b"id,t,x,y\na,1700000000,,\nb,1700000000,,\n", "of 2 records"),
    ],
)
def test_what_cannot_be_read_says_why_and_ends_with_2(tmp_path, content, wrong):
    path = tmp_path / "file"
    path.write_bytes(content)
    told = CliRunner().invoke(app, ["--home", str(tmp_path), "check", str(path)])
    assert told.exit_code == 2
    assert wrong in told.output.replace("\n", " ")


def test_what_was_seen_is_written_as_a_stream_and_replayed(tmp_path):
    path, conf = tmp_path / "fixes.csv", tmp_path / "conf"
    path.write_text(
        "id,t,lon,lat\n"
        + "".join(f"a,{n},10,50\n" for n in range(1_700_000_000, 1_700_000_020))
    )
    options = ["--home", str(tmp_path / "home"), "--conf", str(conf)]
    told = CliRunner().invoke(app, [*options, "check", str(path), "--write", "cars"])
    assert told.exit_code == 0, told.output
    assert load_streams(conf)["cars"].columns.x == "lon"
    again = CliRunner().invoke(app, [*options, "check", str(path), "--write", "cars"])
    assert "has a stream 'cars' already" in again.output
    assert len(tomllib.loads((conf / "streams.toml").read_text())["streams"]) == 1
    told = CliRunner().invoke(app, [*options, "replay", "cars", str(path)])
    assert "20 records" in told.output
    tried = CliRunner().invoke(app, [*options, "check", str(path), "--stream", "cars"])
    assert "20 of 20 records looked at are fixes" in tried.output


def test_a_feed_is_asked_by_its_address(shared, tmp_path):
    body = (shared / "data/gtfsrt-kingcounty/king-county-metro-1.pb").read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/vehicles.pb"
        seen = detect(url)
        told = invoke_check(tmp_path, url, "--write", "buses")
        with_key = invoke_check(tmp_path, f"{url}?key=secret", "--write", "others")
        server.shutdown()
    assert (seen.table["format"], seen.good) == ("gtfs-rt", 627)
    where = f" --home {tmp_path} --conf {tmp_path / 'conf'}"
    assert told.endswith(f"then: fairway capture buses{where}\n")
    streams = load_streams(tmp_path / "conf")
    (source,) = streams["buses"].sources.values()
    assert (source.kind, source.url) == ("http", url)
    assert streams["others"].sources == {}
    assert "the address may hold a key, so it is not written" in with_key
    assert "secret" not in (tmp_path / "conf" / "streams.toml").read_text()


def test_an_address_that_moved_is_followed_and_one_that_is_away_is_said():
    text = b"id,t,x,y\na,1,2,3\n"

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/new":
                self.send_response(200)
                self.send_header("Content-Encoding", "gzip")
                self.end_headers()
                self.wfile.write(gzip.compress(text))
                return
            self.send_response(302 if self.path == "/old" else 404)
            self.send_header("Location", "/new")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        moved = read_head(f"{base}/old")
        with pytest.raises(TransientError, match="/none answers 404"):
            read_head(f"{base}/none")
        server.shutdown()
    assert (moved.data, moved.is_whole) == (text, True)
    with pytest.raises(TransientError, match="Connection refused"):
        read_head(f"{base}/old")


def invoke_check(folder: Path, *args: str) -> str:
    """What `fairway check` says that ends well."""
    options = ["--home", str(folder), "--conf", str(folder / "conf")]
    told = CliRunner().invoke(app, [*options, "check", *args])
    assert told.exit_code == 0, told.output
    return told.output


def test_names_that_belong_together_are_taken_together():
    names = ("name", "mmsi", "heading", "x", "lon", "lat")
    rows = [dict.fromkeys(names, "5")]
    assert guessed(names, rows).columns == {"x": "lon", "y": "lat", "object": "mmsi"}


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    assert form_of(b"\xef\xbb\xbfid,t,x,y\na,1,2,3\n", "file").names[0] == "id"


def test_other_columns_are_named_as_attributes_that_settings_take(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat,kmh,line,a b\na,1700000000,10,50,4.5,7b,1\n")
    note, other = detect(str(path)).notes
    assert other == "--attributes all keeps 'a b' as a_b"
    attributes = note.partition("sources: ")[2]
    assert attributes == 'attributes = { kmh = "double km/h", line = "string" }'
    settings = CliRunner().invoke(
        app, ["--home", str(tmp_path / "home"), "check", str(path)]
    )
    assert settings.exit_code == 0
    text = settings.stdout.partition("\n\n")[0].replace("NAME", "cars")
    (tmp_path / "streams.toml").write_text(f"{text}\n{attributes}\n")
    assert dict(load_streams(tmp_path)["cars"].attributes) == {
        "kmh": "double",
        "line": "string",
    }


def test_a_key_of_the_stream_that_slipped_into_its_source_is_sent_above(tmp_path):
    (tmp_path / "streams.toml").write_text(
        '[streams.s]\nformat = "ndjson"\ncolumns = { object = "id", x = "x", y = "y" }\n'
        '[streams.s.sources.feed]\nkind = "http"\nurl = "http://127.0.0.1/v"\n'
        'attributes = { line = "string" }\n'
    )
    (error,) = load_streams(tmp_path).broken.values()
    assert "source 'feed': 'attributes' is a key of the stream" in error.message
    assert error.hint == "put it above the table of its first source"


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("mqtts://broker/topic", "mqtt"),
        ("wss://feed.example.org/v", "websocket"),
    ],
)
def test_an_address_that_check_does_not_read_is_told_where_its_source_is_shown(
    place, kind
):
    with pytest.raises(ConfigError) as caught:
        detect(place)
    assert f"{place}: check reads files, http(s), tcp and udp" in caught.value.message
    assert f"sources of kind {kind}" in str(caught.value.hint)


def test_the_column_of_objects_can_be_named(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("gizmo,time,lon,lat,colour\nT7,2024-05-01T12:00:00Z,10,50,red\n")
    with pytest.raises(ConfigError, match="no column looks like object") as caught:
        detect(str(path))
    assert "--object" in str(caught.value.hint)
    invoke_check(tmp_path, str(path), "--object", "gizmo", "--write", "trucks")
    assert load_streams(tmp_path / "conf")["trucks"].columns.object == "gizmo"
    with pytest.raises(ConfigError, match="has no column 'lorry'"):
        detect(str(path), owner="lorry")


def test_the_only_column_of_texts_is_taken_for_the_object(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("gizmo,time,lon,lat,load\nT7,2024-05-01T12:00:00Z,10,50,1.5\n")
    seen = detect(str(path))
    assert seen.table["columns"]["object"] == "gizmo"
    assert any(note.startswith("gizmo is taken for the object") for note in seen.notes)


def test_columns_are_kept_as_attributes(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat,load,driver\na,1700000000,10,50,1.5,ann\n")
    all_of_them = {"load": "double", "driver": "string"}
    assert detect(str(path), kept=["all"]).table["attributes"] == all_of_them
    invoke_check(tmp_path, str(path), "--write", "vans", "--attributes", "driver, load")
    attributes = load_streams(tmp_path / "conf")["vans"].attributes
    assert attributes == {"driver": "string", "load": "double"}
    with pytest.raises(ConfigError, match="no column 'lat' for an attribute") as wrong:
        detect(str(path), kept=["lat"])
    assert wrong.value.hint == "load, driver"


def test_a_region_that_holds_all_fixes_is_shown_and_where_it_goes_on(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat\na,1700000000,10.5,50\nb,1700000001,11,49.25\n")
    told = invoke_check(tmp_path, str(path), "--write", "vans")
    assert "all of them are INSIDE (10.5, 49.25, 11, 50)\n" in told
    home, conf = tmp_path, tmp_path / "conf"
    assert f"then: fairway replay vans {path} --home {home} --conf {conf}\n" in told


def test_the_first_query_that_is_shown_can_be_typed_as_it_stands(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat\na,1700000000,10.5,50\nb,1700000001,11,49.25\n")
    told = invoke_check(tmp_path, str(path), "--write", "vans-2")
    where = ["--home", str(tmp_path), "--conf", str(tmp_path / "conf")]
    commands = [
        *map(shlex.split, re.findall("(?:next|then): fairway (.*)", told)),
        [*where, "run", "vans-2", "--engine", "local", "--until-idle"],
    ]
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    answer = CliRunner().invoke(app, [*where, "answer", "first", "--json"])
    assert [json.loads(one)["object"] for one in answer.stdout.splitlines()] == list(
        "ab"
    )


def test_of_a_file_that_goes_on_the_region_is_not_said_to_hold_all(tmp_path):
    path = tmp_path / "fixes.csv"
    line = "a,1700000000,10.5,50\n"
    odd = "a,1700000001,11,49.25\n"
    path.write_text("id,t,lon,lat\n" + line * 20_000 + odd + line * 60_000)
    told = invoke_check(tmp_path, str(path))
    more = "; what was not looked at may lie elsewhere"
    assert f"all of them are INSIDE (10.5, 50, 10.5, 50){more}\n" in told


def test_columns_with_other_names_than_attributes_have_are_kept(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text(
        "id,t,lon,lat,Ship type,load,Load!,X!,#\na,1700000000,10,50,Cargo,1,2,3,4\n"
    )
    table = detect(str(path), kept=["all"]).table
    assert table["attributes"] == {"ship_type": "string", "load": "double"}
    assert table["columns"]["ship_type"] == "Ship type"
    assert table["columns"]["x"] == "lon"
    invoke_check(tmp_path, str(path), "--write", "ships", "--attributes", "Ship type")
    (ships,) = load_streams(tmp_path / "conf").values()
    assert ships.attributes == {"ship_type": "string"}
    assert "Cargo" in invoke_check(tmp_path, str(path), "--stream", "ships")


def test_what_is_kept_is_not_said_to_be_dropped(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat,load,a b\na,1700000000,10,50,1.5,ann\n")
    assert detect(str(path), kept=["all"]).notes == ()
    (note,) = detect(str(path), kept=["a b"]).notes
    assert note.endswith('attributes = { load = "double" }')


def test_all_attributes_of_a_format_with_its_own_columns_can_be_kept(shared):
    path = str(shared / "data/hfp-helsinki/hfp-5000.txt")
    kept = detect(path, kept=["all"]).table["attributes"]
    assert kept["spd"] == "double m/s"
    assert {"dl", "odo", "geohash"} <= kept.keys()
    assert not {"tst", "lat", "long", "vehicle_number"} & kept.keys()
    (note,) = (one for one in detect(path, kept=["dl"]).notes if "attributes" in one)
    assert 'spd = "double m/s"' in note
    assert "odo" not in note
    assert detect(path, kept=["dl"]).table["attributes"] == {"dl": "long s"}


def test_attributes_that_a_format_does_not_know_are_looked_up(shared):
    with pytest.raises(ConfigError, match="no column 'zzz' for an attribute"):
        detect(str(shared / "data/hfp-helsinki/hfp-5000.txt"), kept=["zzz"])


@contextlib.contextmanager
def sending(*portions: bytes, closes: bool):
    """A port of this machine that sends portions to whoever connects first."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send():
            with server.accept()[0] as connection:
                for portion in portions:
                    connection.sendall(portion)
                if not closes:
                    over.wait(60)

        over = threading.Event()
        sender = threading.Thread(target=send)
        sender.start()
        yield server.getsockname()[1]
        over.set()
        sender.join()


@pytest.mark.parametrize("closes", [True, False])
def test_a_socket_is_read_for_some_seconds(tmp_path, closes):
    lines = (b"id,t,lon,lat\na,1700000000,10,", b"50\nb,1700000001,11,49\n")
    with sending(*lines, closes=closes) as port:
        place = f"tcp://127.0.0.1:{port}"
        told = invoke_check(tmp_path, place, "--for", "2", "--write", "vans")
    assert "2 of 2 records looked at are fixes" in told
    assert "then: fairway capture vans" in told
    (source,) = load_streams(tmp_path / "conf")["vans"].sources.values()
    assert (source.kind, source.connect) == ("tcp", f"127.0.0.1:{port}")


def test_the_source_of_a_socket_has_its_place_alone():
    (kind, place) = source_to_toml("vans", "tcp://127.0.0.1:5/").splitlines()[2:]
    assert (kind, place) == ('kind = "tcp"', 'connect = "127.0.0.1:5"')


def test_datagrams_are_records():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    stop = threading.Event()

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not stop.wait(0.05):
                record = b'{"id": "a", "t": 1700000000, "lon": 10, "lat": 50}'
                sender.sendto(record, ("127.0.0.1", port))

    sender = threading.Thread(target=send)
    sender.start()
    try:
        seen = detect(f"udp://:{port}", seconds=3)
    finally:
        stop.set()
        sender.join()
    assert seen.table["format"] == "ndjson"
    assert seen.good == seen.records > 0


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("tcp://127.0.0.1:{port}", "connection refused"),
        ("udp://:{port}", "nothing came in 0.2 s"),
        ("tcp://127.0.0.1:ais", "is no address"),
        ("udp://:65536", "is no address"),
    ],
)
def test_a_socket_without_records_is_told_in_words(place, wrong):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(FairwayError, match=wrong):
        detect(place.format(port=port), seconds=0.2)


@pytest.mark.parametrize(
    ("own", "column", "objects"),
    [
        (("f1", "f2"), "id", ["f1", "f2"]),
        ((7, 8), "id", ["7", "8"]),
        (("f1", None), "properties.id", ["p1", "p2"]),
        ((None, None), "properties.id", ["p1", "p2"]),
    ],
)
def test_the_id_of_features_is_guessed_as_it_is_decoded(tmp_path, own, column, objects):
    features = [
        {"type": "Feature", **({} if one is None else {"id": one})}
        | {"properties": {"id": f"p{at}", "ts": 1_700_000_000}}
        | {"geometry": {"type": "Point", "coordinates": [10, 50]}}
        for at, one in enumerate(own, 1)
    ]
    path = tmp_path / "features.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    seen = detect(str(path))
    assert seen.table["columns"]["object"] == column
    assert seen.fixes["object"].to_pylist() == objects
    assert seen.good == seen.records == 2


def test_every_column_of_a_fix_can_be_named(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("lorry,seen,across,up\na,1700000000,10.5,50\nb,1700000001,1,5\n")
    with pytest.raises(ConfigError, match="no column looks like x, y") as caught:
        detect(str(path))
    assert "--x, --y COLUMN" in str(caught.value.hint)
    named = ("--object", "lorry", "--time", "seen", "--x", "across", "--y", "up")
    told = invoke_check(tmp_path, str(path), *named)
    assert "2 of 2 records looked at are fixes" in told
    assert 'time_unit = "s"' in told
    with pytest.raises(ConfigError, match="has no column 'west'"):
        detect(str(path), named={"x": "west", "y": "north"})


def test_what_is_named_is_taken_as_it_is_called(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_text("id,t,lon,lat,created\na,1700000000,50,120,1600000000\n")
    assert detect(str(path)).table["columns"]["x"] == "lat"  # they look exchanged
    seen = detect(str(path), named={"x": "lon", "y": "lat", "event_ts": "created"})
    columns = seen.table["columns"]
    assert (columns["x"], columns["event_ts"]) == ("lon", "created")


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"id,timestamp,lat,lon\n", "csv"),
        (b"<gpx><trk><name>a</name><trkseg></trkseg></trk></gpx>", "gpx"),
        (b'{"time":1700000000,"states":null}', "opensky"),
        (b"\n\x05\n\x032.0", "gtfs-rt"),
    ],
)
def test_what_holds_no_record_is_named_with_its_settings_as_far_as_they_are_known(
    tmp_path, content, form
):
    path = tmp_path / "file"
    path.write_bytes(content)
    told = invoke_check(tmp_path, str(path))
    assert f'format = "{form}"' in told
    assert "0 records: " in told


@pytest.mark.parametrize("content", [b"[]", b'{"vehicles": []}', b"{}"])
def test_an_empty_list_says_that_nothing_shows_its_columns(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="0 records, so that nothing shows its col"):
        detect(str(path))


def test_settings_that_no_record_has_shown_are_not_written(tmp_path):
    path = tmp_path / "file"
    path.write_text("id,timestamp,lat,lon\n")
    where = ["--home", str(tmp_path), "--conf", str(tmp_path / "conf")]
    told = CliRunner().invoke(app, [*where, "check", str(path), "--write", "cars"])
    assert told.exit_code == 2
    assert "nothing shows how its times are written" in told.output
    assert not (tmp_path / "conf").exists()


def test_times_ahead_of_now_are_told_with_the_zone_that_mends_them(tmp_path):
    ahead = datetime.fromtimestamp(time.time_ns() / 1e9 + 7_200, UTC)
    stamp = ahead.strftime("%Y/%m/%d,%H:%M:%S.000")
    line = f"MSG,3,1,1,4B1234,1,{stamp},{stamp},,35000,,,52.1,13.0,,,0,0,0,0\n"
    path = tmp_path / "planes.txt"
    path.write_text(line * 10)
    told = CliRunner().invoke(app, ["--home", str(tmp_path), "check", str(path)])
    assert told.exit_code == 2
    said = " ".join(told.output.split())
    assert "10 are too_far_ahead" in said
    assert "2 h ahead of their arrival" in said
    assert 'time_zone = "Europe/Berlin"' in said


def test_local_times_west_of_greenwich_are_told(tmp_path):
    behind = datetime.fromtimestamp(time.time_ns() / 1e9 - 5 * 3600, UTC)
    path = tmp_path / "cars.csv"
    path.write_text(f"id,time,lat,lon\na,{behind:%Y-%m-%d %H:%M:%S},40.7,-74\n")
    (first, *_) = detect(str(path)).notes
    assert first.startswith("the newest fix is 5 h older than its arrival")
    assert "time_zone" in first
