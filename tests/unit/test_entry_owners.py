"""Objects that no record names, and values of the document around the records (SPEC X16)."""

import asyncio
import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.detect.report import Detected, detect, to_toml
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.log.record_settings import log_for, reading_of, with_reading
from st_common.replay.files import replay
from st_common.replay.sample import sample_of
from st_common.replay.tally import Tally
from st_common.sources.arrival import Arrival
from st_common.sources.files import Files
from st_common.sources.writer import Writer

NOW = 1_900_000_000_000_000
PLACES = {"event_ts": "t", "x": "lon", "y": "lat"}
ROWS = b"t,lon,lat\n1700000000,1,2\n1700000060,1,3\n"
READSB = {
    "format": "ndjson",
    "records": "aircraft",
    "columns": {
        "object": "hex",
        "event_ts": "document.now",
        "age": "seen_pos",
        "x": "lon",
        "y": "lat",
    },
    "time_unit": "s",
}


def stream_of(owner: object = None, **table) -> StreamSettings:
    columns = PLACES if owner is None else {"object": owner, **PLACES}
    keys = {"format": "csv", "columns": columns, "time_unit": "s", "engine": "local"}
    return stream_of_table("s", {**keys, **table}, Path("streams.toml"))


def objects(payload: bytes, stream: StreamSettings) -> list[str]:
    return decode(payload, stream, arrival_us=NOW).fixes["object"].to_pylist()


def stored(home: Home) -> set[tuple[str, float]]:
    rows = tables.read(home.table("positions", "s"))
    return set(zip(rows["object"].to_pylist(), rows["y"].to_pylist(), strict=True))


@pytest.mark.spec("X16")
def test_a_constant_is_the_object_of_all_records():
    assert objects(ROWS, stream_of({"value": "phone"})) == ["phone", "phone"]


@pytest.mark.spec("X16")
def test_tracks_without_names_have_a_constant_for_an_object():
    point = '<trkpt lat="52.5" lon="13.4"><time>2024-06-15T10:30:00Z</time></trkpt>'
    payload = f'<gpx version="1.1"><trk><trkseg>{point}</trkseg></trk></gpx>'.encode()
    columns = {"object": {"value": "me"}, "event_ts": "time", "x": "lon", "y": "lat"}
    stream = stream_of_table(
        "s", {"format": "gpx", "columns": columns}, Path("streams.toml")
    )
    assert objects(payload, stream) == ["me"]


@pytest.mark.spec("X16")
@pytest.mark.parametrize(
    "wrong",
    [
        {"value": " "},
        {"value": 7},
        {"from": "folder"},
        {},
        {"value": "a", "from": "source"},
    ],
)
def test_an_owner_of_another_form_is_an_error(wrong):
    with pytest.raises(ConfigError, match=r"columns: object = .* must be \{ value"):
        stream_of(wrong)


@pytest.mark.spec("X16")
def test_records_whose_origin_nobody_says_have_no_object():
    stream = stream_of({"from": "file name"})
    rejects = decode(ROWS, stream, arrival_us=NOW).rejects
    assert rejects["reason"].to_pylist() == ["missing_object"] * 2


@pytest.mark.spec("X16", "X14")
def test_files_of_one_device_each_are_one_replay_with_their_names_as_objects(tmp_path):
    one, two = tmp_path / "bus7.csv", tmp_path / "tram.9.csv"
    one.write_bytes(ROWS)
    two.write_bytes(b"t,lon,lat\n1700000030,1,4\n1700000090,1,5\n")
    home, stream = Home(tmp_path / "home"), stream_of({"from": "file name"})
    replay(log_for(home, stream), [one, two], stream)
    summary = run(home, stream, until_idle=True)
    assert stored(home) == {
        ("bus7", 2.0),
        ("bus7", 3.0),
        ("tram.9", 4.0),
        ("tram.9", 5.0),
    }
    assert summary.late == 0


@pytest.mark.spec("X16")
def test_a_sample_of_such_a_file_can_be_read(tmp_path):
    path, stream, tally = (
        tmp_path / "bus.csv",
        stream_of({"from": "file name"}),
        Tally(),
    )
    path.write_bytes(ROWS)
    tally.add_sample(sample_of(path, stream), stream, arrival_us=NOW)
    assert (tally.good, tally.records) == (2, 2)


@pytest.mark.spec("X16")
def test_a_replayed_file_has_no_source_for_a_name(tmp_path):
    path, home = tmp_path / "bus.csv", Home(tmp_path / "home")
    path.write_bytes(ROWS)
    stream = stream_of({"from": "source"})
    with pytest.raises(ConfigError, match="a file has no source"):
        replay(log_for(home, stream), path, stream)


@pytest.mark.spec("X16")
def test_what_a_source_brings_is_called_after_it(tmp_path):
    home, stream = Home(tmp_path / "home"), stream_of({"from": "source"}, codec="raw")
    for name, y in (("roof", b"2"), ("mast", b"3")):
        body = b"1700000000,1," + y + b"\n"
        arrival = Arrival(header=b"t,lon,lat\n", body=body, records=1)
        Writer(home, stream, name).write([arrival])
    run(home, stream, until_idle=True)
    assert stored(home) == {("roof", 2.0), ("mast", 3.0)}


@pytest.mark.spec("X16")
def test_files_of_a_source_say_whose_records_they_hold(tmp_path):
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / "bus7.csv").write_bytes(ROWS)
    (folder / "bus8.csv").write_bytes(ROWS)
    table = {"feed": {"kind": "files", "path": str(folder)}}
    stream = stream_of({"from": "file name"}, sources=table)

    async def first_two() -> list[Arrival]:
        source, seen = Files(stream.sources["feed"], stream), []
        async for arrival in source.arrivals(dict):
            seen.append(arrival)
            if len(seen) == 2:
                return seen
        return seen

    arrivals = asyncio.run(first_two())
    assert [one.owner for one in arrivals] == ["bus7", "bus8"]
    home = Home(tmp_path / "home")
    Writer(home, stream, "feed").write(arrivals)
    run(home, stream, until_idle=True)
    assert {name for name, _ in stored(home)} == {"bus7", "bus8"}


@pytest.mark.spec("X16")
def test_a_source_without_files_has_no_names_of_files():
    with pytest.raises(ConfigError, match="reads no files"):
        stream_of(
            {"from": "file name"},
            sources={"gate": {"kind": "tcp", "listen": "0.0.0.0:9"}},
        )


@pytest.mark.spec("X16", "S2")
@pytest.mark.parametrize("owner", [{"value": "a"}, {"from": "file name"}])
def test_the_log_says_whose_its_records_are(owner):
    stream = stream_of(owner)
    reading = json.loads(json.dumps(reading_of(stream)))
    assert (
        with_reading(stream_of("id"), reading, where="a log").columns == stream.columns
    )


def aircraft(now: object, *planes: Mapping[str, object]) -> bytes:
    return json.dumps({"now": now, "messages": 10, "aircraft": planes}).encode()


def plane(name: str, **more: object) -> dict[str, object]:
    return {"hex": name, "lat": 41.98, "lon": -71.98, **more}


def times(payload: bytes, stream: StreamSettings) -> list[int]:
    fixes = decode(payload, stream, arrival_us=NOW).fixes
    return fixes["event_ts"].to_pylist()


@pytest.mark.spec("X16")
@pytest.mark.parametrize(("now", "unit"), [(1753571941.0, "s"), (1753571941000, "ms")])
def test_a_time_of_the_document_less_the_age_of_a_place_is_its_time(now, unit):
    payload = aircraft(now, plane("a", seen_pos=6.0), plane("b", seen_pos=53.2))
    stream = stream_of_table("s", {**READSB, "time_unit": unit}, Path("streams.toml"))
    assert times(payload, stream) == [1753571935_000_000, 1753571887_800_000]


@pytest.mark.spec("X16")
def test_an_age_that_is_none_is_a_reject():
    payload = aircraft(
        1753571941,
        plane("a"),
        plane("b", seen_pos="?"),
        plane("c", seen_pos=-1),
        plane("d", seen_pos=1e300),
    )
    stream = stream_of_table("s", READSB, Path("streams.toml"))
    rejects = decode(payload, stream, arrival_us=NOW).rejects
    expected = ["missing_time", "bad_time", "bad_time", "bad_time"]
    assert rejects["reason"].to_pylist() == expected


@pytest.mark.spec("X16")
def test_records_of_several_documents_keep_their_times_however_they_are_stored(
    tmp_path,
):
    documents = [
        aircraft(1753571941 + 5 * n, *(plane(f"p{k}", seen_pos=k) for k in range(40)))
        for n in reversed(range(30))
    ]
    path, home = tmp_path / "sky.json", Home(tmp_path / "home")
    path.write_bytes(b"\n".join(documents))
    table = {**READSB, "engine": "local"}
    stream = stream_of_table("s", table, Path("streams.toml"))
    replay(log_for(home, stream), path, stream, segment_bytes=5000)
    run(home, stream, until_idle=True)
    rows = tables.read(home.table("positions", "s"))
    at = sorted(
        zip(
            rows["object"].to_pylist(),
            rows["event_ts"].cast("int64").to_pylist(),
            strict=True,
        )
    )
    assert at == sorted(
        (f"p{k}", (1753571941 + 5 * n - k) * 1_000_000)
        for n in range(30)
        for k in range(40)
    )


@pytest.mark.spec("X16")
def test_values_around_a_list_are_columns_by_their_paths():
    payload = b'{"last_updated":1700000000,"data":{"zone":"N","bikes":[{"id":"b","lon":1,"lat":2}]}}'
    columns = {
        "object": "id",
        "event_ts": "document.last_updated",
        "x": "lon",
        "y": "lat",
    }
    table = {
        "format": "ndjson",
        "records": "data.bikes",
        "columns": {**columns, "zone": "document.data.zone"},
        "attributes": {"zone": "string"},
        "time_unit": "s",
        "where": "\"document.data.zone\" = 'N'",
    }
    stream = stream_of_table("s", table, Path("streams.toml"))
    fixes = decode(payload, stream, arrival_us=NOW).fixes
    assert fixes["zone"].to_pylist() == ["N"]
    assert fixes["event_ts"].to_pylist() == [1_700_000_000_000_000]


@pytest.mark.spec("X16")
def test_an_age_needs_a_time():
    columns = {"object": "hex", "age": "seen_pos", "x": "lon", "y": "lat"}
    with pytest.raises(ConfigError, match="age without event_ts"):
        stream_of_table("s", {**READSB, "columns": columns}, Path("streams.toml"))


@pytest.mark.spec("X16", "S2")
def test_what_is_off_is_not_said_of_older_logs():
    plain = replace(stream_of("id"), drop_null_island=None, cleaning=0)
    said = reading_of(plain)["columns"]
    assert not {"age", "object_value", "object_from"} & said.keys()


def checked(path: Path, text: str) -> Detected:
    path.write_text(text)
    return detect(str(path))


@pytest.mark.spec("X15", "X16")
def test_a_file_of_one_device_without_ids_is_called_by_its_name_and_that_is_told(
    tmp_path,
):
    text = (
        "time,lat,lon\n2024-06-15T10:30:00Z,52.5,13.4\n2024-06-15T10:31:00Z,52.6,13.4\n"
    )
    seen = checked(tmp_path / "gpslogger.csv", text)
    assert (seen.good, seen.records) == (2, 2)
    assert seen.table["columns"]["object"] == {"value": "gpslogger"}
    assert any("one object" in note for note in seen.notes)
    table = tomllib.loads(to_toml("s", seen.table))["streams"]["s"]
    assert stream_of_table("s", table, Path("x")).columns.object_value == "gpslogger"


@pytest.mark.spec("X15", "X16")
def test_tracks_without_names_are_called_by_their_file(tmp_path):
    point = '<trkpt lat="52.5" lon="13.4"><time>2024-06-15T10:30:00Z</time></trkpt>'
    text = f'<gpx version="1.1"><trk><trkseg>{point}</trkseg></trk></gpx>'
    seen = checked(tmp_path / "noname.gpx", text)
    assert (seen.good, seen.table["columns"]["object"]) == (1, {"value": "noname"})


@pytest.mark.spec("X15", "X16")
def test_places_at_one_time_are_of_several_devices_so_that_no_object_is_guessed(
    tmp_path,
):
    text = (
        "time,lat,lon\n2024-06-15T10:30:00Z,52.5,13.4\n2024-06-15T10:30:00Z,53.5,14.4\n"
    )
    with pytest.raises(ConfigError, match="no column looks like object"):
        checked(tmp_path / "two.csv", text)


@pytest.mark.spec("X14", "X16")
def test_files_whose_lines_need_each_other_are_not_sorted_among_those_of_others(
    tmp_path,
):
    line = b"$GPRMC,172356.00,A,5051.84,N,00510.31,E,0,0,250820,,,A*5F\n"
    paths = [tmp_path / "anna.nmea", tmp_path / "berta.nmea"]
    for path in paths:
        path.write_bytes(line)
    columns = {"object": {"from": "file name"}, "event_ts": "time"}
    table = {"format": "nmea", "columns": columns, "engine": "local"}
    stream = stream_of_table("s", table, Path("x"))
    log = log_for(Home(tmp_path / "home"), stream)
    with pytest.raises(ConfigError, match="cannot be sorted together"):
        replay(log, paths, stream)
    replay(log, paths[:1], stream)
    replay(log, paths, stream, as_they_stand=True)
