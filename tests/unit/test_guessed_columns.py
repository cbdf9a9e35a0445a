"""Columns are told by their values first, then by their names; what would fit as well is said."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from st_common.config.streams import stream_of_table
from st_common.detect.columns import guessed
from st_common.detect.report import detect
from st_common.errors import ConfigError

pytestmark = pytest.mark.spec("B6", "B7", "X15")

TIMES = [f"2024-05-01T08:{n:02}:00Z" for n in range(6)]


def table_of(**columns: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Names, which have `__` for a blank, and rows."""
    names = [name.replace("__", " ") for name in columns]
    return names, [
        dict(zip(names, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def fixes_of(**columns: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Six fixes near Berlin with other columns in front."""
    places = {
        "lat": [f"52.{n}" for n in range(6)],
        "lon": [f"13.{n}" for n in range(6)],
    }
    return table_of(**columns, time=TIMES, **places)


def said(guess) -> str:
    return "\n".join(guess.notes)


def check_text(tmp_path, text: str):
    path = tmp_path / "file"
    path.write_text(text)
    return detect(str(path))


def test_a_number_of_the_row_is_no_object():
    guess = guessed(*fixes_of(id=list("123456"), tracker=list("aabbab")))
    assert guess.columns["object"] == "tracker"
    assert "id numbers the rows, and is no object" in said(guess)
    numbered = guessed(*fixes_of(id=list("123456")))
    assert numbered.columns["object"] == "id"
    assert "each fix is an object of its own" in said(numbered)


def test_two_columns_that_could_be_the_object_are_both_told():
    guess = guessed(*fixes_of(name=list("aabbaa"), mmsi=list("112211")))
    assert guess.columns["object"] == "mmsi"
    assert "also fits: --object name" in said(guess)


def test_of_columns_without_names_the_object_is_the_one_that_moves_in_small_steps():
    names = ["1", "2", "3", "4", "5"]
    rows = [
        {"1": str(n % 3 * 90), "2": TIMES[n % 6], "3": f"{50 + n % 2 + n / 1000:.5f}", "4": f"{8 + n / 1000:.5f}",
         "5": f"car{n % 2}"}
        for n in range(30)
    ]  # fmt: skip
    guess = guessed(names, rows)
    assert guess.columns["object"] == "5"
    rows = [{**row, "5": row["5"][-1]} for row in rows]
    assert guessed(names, rows).columns["object"] == "5"


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("Longitude", "Latitude"),
        ("location-long", "location-lat"),
        ("Länge", "Breite"),
        ("longitud", "latitud"),
        ("Längengrad", "Breitengrad"),
        ("lengtegraad", "breedtegraad"),
        ("pituusaste", "leveysaste"),
        ("GPS Longitude (deg)", "GPS Latitude (deg)"),
        ("decimalLongitude", "decimalLatitude"),
        ("gps_lng", "gps_lat"),
        (" lon ", " lat "),
        ("X-Koordinate", "Y-Koordinate"),
        ("position.lng", "position.lat"),
    ],
)
def test_places_are_known_by_their_names_in_several_languages(x, y):
    rows = [{"id": "a", y: "52.5", x: "13.4"}, {"id": "a", y: "52.6", x: "13.5"}]
    guess = guessed(["id", y, x], rows)
    assert (guess.columns["x"], guess.columns["y"]) == (x, y)


@pytest.mark.parametrize(
    "name",
    ["Vehicle ID", "vehicleId", "plate", "Kennzeichen", "Fahrzeug", "unit", "unidad", "véhicule", "matrícula",
     "kenteken", "ajoneuvo", "IMEI", "tracker_no", "Gerät", "asset name", "vehicle.vehicle.id",
     "individual-local-identifier", "registration", "Placa", "immatriculation", "callsign"],
)  # fmt: skip
def test_objects_are_known_by_their_names_in_several_languages(name):
    names = ["speed", name, "colour", "time", "lat", "lon"]
    rows = [
        dict(zip(names, (str(n), "ab"[n % 2], "red", TIMES[n], f"5.{n}", f"1.{n}"), strict=True))
        for n in range(6)
    ]  # fmt: skip
    assert guessed(names, rows).columns["object"] == name


@pytest.mark.parametrize(
    "name",
    ["Zeitstempel", "Fecha", "horodatage", "tijdstip", "last_event_time", "last_reported", "Uhrzeit", "BaseDateTime",
     "# Timestamp", "recordedAt", "gps time", "fecha_hora", "aikaleima", "vehicle.timestamp", "UTC"],
)  # fmt: skip
def test_times_are_known_by_their_names_in_several_languages(name):
    rows = [
        {"id": "a", name: t, "created_at": "2024-05-09T00:00:00Z", "lat": "5.1", "lon": "1"}
        for t in TIMES
    ]  # fmt: skip
    guess = guessed(["id", "created_at", name, "lat", "lon"], rows)
    assert guess.columns["event_ts"] == name


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["24.11.2025 08:00", "25.11.2025 08:00"], "%d.%m.%Y %H:%M"),
        (["11/24/2025 8:00:05 PM"], "%m/%d/%Y %I:%M:%S %p"),
        (["1764000000"], "s"),
        (["1764000000000"], "ms"),
        (["1764000000000000"], "us"),
        (["1764000000000000000"], "ns"),
        (["45985.333333"], "excel"),
        (["Mon, 24 Nov 2025 08:00:00 +0000"], "rfc2822"),
        (["2025-11-24 08:00:00.123 +0000 UTC"], "iso"),
        (["20251124080000"], "%Y%m%d%H%M%S"),
        (["2025-11-24T08:00:00Z"], "iso"),
        (["Nov 24, 2025 8:00:00 AM"], "%b %d, %Y %I:%M:%S %p"),
        (["24-Nov-2025 08:00"], "rfc2822"),
        (["2025/11/24,08:00:00.000"], "%Y/%m/%d,%H:%M:%S"),
    ],
)
def test_the_way_in_which_times_are_written_is_found(texts, unit):
    rows = [{"id": "a", "time": t, "lat": "5.1", "lon": "1"} for t in texts]
    guess = guessed(["id", "time", "lat", "lon"], rows)
    assert guess.columns["event_ts"] == "time"
    assert guess.time_unit == unit


def test_days_and_months_that_may_be_exchanged_are_told_with_the_second_reading():
    days = [f"0{n}/02/2024 08:00:00" for n in range(1, 7)]
    names, rows = fixes_of(id=["a"] * 6, stamp=days)
    guess = guessed(names, rows, named={"event_ts": "stamp"})
    assert guess.time_unit == "%d/%m/%Y %H:%M:%S"
    assert (
        'also fits: time_unit = "%m/%d/%Y %H:%M:%S", then they begin at 2024-01-02'
        in said(guess)
    )
    settled = [*days[:-1], "13/02/2024 08:00:00"]
    names, rows = fixes_of(id=["a"] * 6, stamp=settled)
    assert "%m/%d" not in said(guessed(names, rows, named={"event_ts": "stamp"}))


def test_a_date_and_a_time_apart_are_taken_together():
    names, rows = table_of(
        Datum=["24.11.2025"] * 3, Zeit=["08:00:00.250", "08:00:01.5", "08:00:02"],
        Kennzeichen=["B-AB 1"] * 3, Breite=["52.5"] * 3, Laenge=["13.4"] * 3,
    )  # fmt: skip
    guess = guessed(names, rows)
    assert guess.columns["event_ts"] == ["Datum", "Zeit"]
    assert guess.time_unit == "%d.%m.%Y %H:%M:%S"


def test_another_column_with_the_same_times_is_told():
    names, rows = fixes_of(id=["a"] * 6, UTC=TIMES)
    guess = guessed(names, rows)
    assert "also fits: --time time, with the same times" in said(guess)


def test_times_without_a_zone_are_told():
    rows = [{"id": "a", "time": "2024-05-01 08:00:00", "lat": "5", "lon": "1"}]
    assert "name no zone and are read as UTC" in said(
        guessed(["id", "time", "lat", "lon"], rows)
    )


def test_one_sentinel_exchanges_no_axes():
    names, rows = table_of(
        t=TIMES[:3], MMSI=list("112"), Latitude=["91.000", "55.5", "55.6"], Longitude=["0.0", "11.5", "11.6"]
    )  # fmt: skip
    guess = guessed(names, rows)
    assert (guess.columns["x"], guess.columns["y"]) == ("Longitude", "Latitude")
    all_beyond = [{**row, "Latitude": "116.4"} for row in rows]
    swapped = guessed(names, all_beyond)
    assert swapped.columns["x"] == "Latitude"
    assert "also fits: --x Longitude --y Latitude" in said(swapped)


def test_columns_without_names_are_judged_by_their_values(tmp_path):
    lines = "".join(
        f"{n % 3},2024-05-01 08:0{n}:00,116.40{n},39.90{n}\n" for n in range(6)
    )
    columns = check_text(tmp_path, lines).table["columns"]
    assert columns == {"x": "3", "y": "4", "event_ts": "2", "object": "1"}
    seen = check_text(tmp_path, lines.replace("116.", "16."))
    assert any(
        "also fits: --x 4 --y 3" in n or "also fits: --x 3 --y 4" in n
        for n in seen.notes
    )


def test_trips_with_two_places_are_refused_with_the_command_that_makes_fixes(tmp_path):
    text = "ride,started_at,start_lat,start_lng,end_lat,end_lng\na,2024-05-01T08:00:00Z,1,2,3,4\n"
    with pytest.raises(ConfigError, match="two places") as wrong:
        check_text(tmp_path, text)
    assert "UNION ALL" in str(wrong.value.hint)


def test_ids_that_a_spreadsheet_has_rounded_are_told():
    guess = guessed(*fixes_of(imei=["8.61234E+14"] * 6))
    assert "look rounded by a spreadsheet (8.61234E+14)" in said(guess)


def test_a_line_of_units_and_a_second_header_hide_nothing(tmp_path):
    head, line = "id,time,lat,lon,speed_kmh\n", "a,1700000000,52.5,13.4,50\n"
    seen = check_text(tmp_path, head + ",s,deg,deg,km/h\n" + line * 3 + head + line * 3)
    assert seen.table["columns"]["object"] == "id"
    assert seen.good == 6
    assert any("the line under the header is no record" in note for note in seen.notes)


def test_attributes_are_proposed_with_their_types_and_units():
    columns = {
        "speed_kmh": "50", "sog": "9", "altitude_ft": "100", "route": "007", "valid": "true",
        "heading": "5", "speed_mps": "3", "altitude_m": "3.5",
    }  # fmt: skip
    names, rows = fixes_of(
        id=list("aabbab"), **{n: [v] * 6 for n, v in columns.items()}
    )
    types = {name: one.type for name, one in guessed(names, rows).others.items()}
    assert types == {
        "speed_kmh": "double km/h", "sog": "double knots", "altitude_ft": "double ft", "route": "string",
        "valid": "bool", "heading": "double", "speed_mps": "double m/s", "altitude_m": "double m",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["ID", "AIR", "STA", "SEL", "CLK", "MSG"])
def test_a_header_that_begins_like_sbs1_is_a_header(tmp_path, kind):
    text = (
        f"{kind},timestamp,longitude,latitude\n"
        + "7,2021-03-20T00:22:00Z,32.3,31.4\n" * 3
    )
    seen = check_text(tmp_path, text)
    assert seen.table["format"] == "csv"
    assert seen.good == 3


def test_what_an_owner_marked_as_wrong_is_left_out_by_the_filter_that_is_proposed(
    tmp_path,
):
    line = "{},2024-05-01T08:00:0{}Z,52.5,13.4,{}\n"
    text = "id,time,lat,lon,visible\n" + "".join(
        line.format("ab"[n % 2], n, str(n != 3).lower()) for n in range(6)
    )
    seen = check_text(tmp_path, text)
    (note,) = [one for one in seen.notes if "outliers" in one]
    assert note.startswith("1 records have visible = false")
    table = {**seen.table, "where": note.partition("where = '")[2].partition("'")[0]}
    stream = stream_of_table("s", table, tmp_path)
    again = detect(str(tmp_path / "file"), stream)
    assert (again.good, again.reasons) == (5, {"filtered_out": 1})


def test_a_column_that_marks_outliers_is_named_though_none_was_looked_at(tmp_path):
    path = tmp_path / "storks.csv"
    path.write_text(
        "id,time,lat,lon,visible\n"
        + "".join(f"a,2024-05-01T08:0{n}:00Z,60.1,24.{n},true\n" for n in range(5))
    )
    (note,) = [one for one in detect(str(path)).notes if "outliers" in one]
    assert "where = 'visible' leaves out those that are" in note


@pytest.mark.parametrize(
    ("points", "owner"),
    [
        ('<wpt lat="1" lon="2"><name>w</name><time>2024-05-01T08:00:00Z</time></wpt>', "name"),
        ('<trk><name>t</name><trkseg><trkpt lat="1" lon="2"><time>2024-05-01T08:00:00Z</time></trkpt></trkseg></trk>',
         "trk/name"),
    ],
)  # fmt: skip
def test_waypoints_without_a_track_are_named_by_their_own_name(tmp_path, points, owner):
    seen = check_text(tmp_path, f"<gpx>{points}</gpx>")
    assert seen.table["columns"]["object"] == owner
    assert seen.good == 1


@pytest.mark.parametrize(
    ("header", "place", "settings"),
    [
        ("lat;lon", "52,5;13,4", {"decimal": ","}),
        ("lat;lon", "52.5N;13.4E", {}),
        ("lat;lon", "52°30'00\"N;13°24'00\"E", {}),
        ("lat;lon", "525000000;134000000", {"coordinates": "e7"}),
        ("latE6;lonE6", "52500000;13400000", {"coordinates": "e6"}),
        ("lat;ns;lon;ew", "5230.00;N;01324.00;E", {"coordinates": "nmea"}),
        ("lat;ns;lon;ew", "52.5;N;13.4;E", {}),
        ("position", "52.5, 13.4", {"place_order": "lat lon"}),
        ("position", "52.5N 13.4E", {}),
        ("wkt", "POINT (13.4 52.5)", {}),
        ("wkt", "SRID=4326;POINT (13.4 52.5)".replace(";", "@"), {}),
        ("geom", "0101000000cdcccccccccc2a400000000000404a40", {}),
    ],
)
def test_coordinates_are_found_however_they_are_written(
    tmp_path, header, place, settings
):
    place = place.replace('"', '""')
    fields = ";".join(f'"{one}"'.replace("@", ";") for one in place.split(";"))
    lines = "".join(f"a;2024-05-01T08:00:0{n}Z;{fields}\n" for n in range(3))
    seen = check_text(tmp_path, f"id;time;{header}\n{lines}")
    assert seen.good == 3, seen.mend
    keys = ("decimal", "coordinates", "place_order")
    assert {key: seen.table[key] for key in keys if key in seen.table} == settings
    x, y = (seen.fixes[axis].to_pylist() for axis in "xy")
    assert x == pytest.approx([13.4] * 3)
    assert y == pytest.approx([52.5] * 3)


def test_the_order_of_two_coordinates_in_one_column_is_told(tmp_path):
    line = 'a,2024-05-01T08:00:0{}Z,"{}, {}"\n'
    text = "id,time,pos\n" + "".join(line.format(n, 50.1, 8.5) for n in range(3))
    notes = check_text(tmp_path, text).notes
    assert any('also fits: place_order = "lon lat"' in note for note in notes)
    text = "id,time,pos\n" + "".join(line.format(n, 116.4, 39.9) for n in range(3))
    seen = check_text(tmp_path, text)
    assert seen.table["place_order"] == "lon lat"
    assert not any("also fits: place_order" in note for note in seen.notes)


def test_ais_without_times_is_read_by_its_arrival(tmp_path):
    line = "!AIVDM,1,1,,B,177KQJ5000G?tO`K>RA1wUbN0TKH,0*5C\n"
    seen = check_text(tmp_path, line * 3)
    assert seen.table["columns"] == {"object": "mmsi"}
    assert (seen.good, seen.is_timeless) == (3, True)
    assert "their arrival is their time" in seen.notes[0]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["00123", "00124"], "ids of id are texts: 00123 is another object than 123"),
        (["00123", "123"], "00123 is another object than 123; both are there"),
        (["219000001.0", "219000002.0"], "exports add it: 219000001.0 is read as 219000001"),
        (["219000001", "219000001.0"], "219000001.0 is read as 219000001; both are there"),
    ],
    ids=["zeros", "zeros and none", "fractions", "fractions and none"],
)  # fmt: skip
def test_ids_that_may_be_texts_or_numbers_are_told(ids, words):
    names, rows = fixes_of(id=ids * 3)
    assert words in said(guessed(names, rows))


@pytest.mark.parametrize(
    "ids",
    [["123", "124"], ["a.0", "0x1"], ["0", "7"]],
    ids=["numbers", "texts", "zero"],
)
def test_ids_that_can_be_read_in_one_way_are_not_told(ids):
    names, rows = fixes_of(id=ids * 3)
    assert "ids of id" not in said(guessed(names, rows))


@pytest.mark.parametrize(
    ("unit", "zone", "is_told"),
    [("s", "UTC", False), ("ms", "Europe/Berlin", False), ("ns", "+01:00", False), ("us", None, True),
     ("ns", None, True)],
    ids=["utc", "berlin", "difference", "none", "none in ns"],
)  # fmt: skip
def test_typed_times_are_told_to_have_no_zone_where_they_have_none(
    tmp_path, unit, zone, is_told
):
    path = tmp_path / "fixes.parquet"
    kind = pa.timestamp(unit, zone)
    per_s = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    counts = [(1_764_000_000 + n) * per_s + (per_s > 1) * n for n in range(3)]
    times = pa.array(counts, pa.int64()).cast(kind)
    pq.write_table(
        pa.table({"id": list("aba"), "t": times, "lon": [1.5] * 3, "lat": [2.5] * 3}),
        path,
    )
    seen = detect(str(path))
    assert seen.good == 3
    assert ("name no zone" in " ".join(seen.notes)) == is_told
