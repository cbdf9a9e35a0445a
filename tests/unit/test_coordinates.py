"""Coordinates in all forms in which the world writes them, against values computed by hand."""

import json

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.decode.degrees import coordinates_of, with_point
from st_common.decode.points import points_of
from st_common.errors import ConfigError
from st_common.log.record_settings import reading_of, with_reading

pytestmark = pytest.mark.spec("B7")

LATITUDES, LONGITUDES = st.floats(-90, 90), st.floats(-180, 180)


def one(value, axis="y", form="degrees") -> object:
    parsed = coordinates_of(pa.array([value]), axis, form)
    if parsed.missing[0]:
        return "missing"
    return "bad" if parsed.bad[0] else float(parsed.values[0])


@pytest.mark.parametrize(
    ("text", "degrees"),
    [
        ("60.17", 60.17),
        ("60.17N", 60.17),
        ("60.17 n", 60.17),
        ("N 60.17", 60.17),
        ("S60.17", -60.17),
        ("60°10'12\"N", 60.17),
        ("60° 10\u2032 12\u2033 S", -60.17),
        ("60º10\u201912''N", 60.17),
        ("60 10.2 N", 60.17),
        ("60:10:12 N", 60.17),
        ("N 60 10 12", 60.17),
        ("-60°30'", -60.5),
        ("\u221260.5°", -60.5),
        ("60.17°", 60.17),
        ("90°0'0\"S", -90.0),
    ],
)
def test_a_latitude_in_any_form_is_read_without_a_setting(text, degrees):
    assert one(text) == pytest.approx(degrees, abs=1e-13)


@pytest.mark.parametrize(
    "text",
    [
        "60.17E",
        "60 10",
        "60 24.94",
        "60.1 10 N",
        "60 61 N",
        "60 10 61 N",
        "N60.17S",
        "-60.17 S",
        "6010N",
        "N",
        "°",
        "60,17",
        "60.17NN",
        "x",
    ],
)
def test_what_is_no_latitude_stays_a_bad_number(text):
    assert one(text) == "bad"


@pytest.mark.parametrize(
    ("value", "axis", "form", "degrees"),
    [
        ("6010.2", "y", "nmea", 60.17),
        ("6010.2 N", "y", "nmea", 60.17),
        ("02456.4", "x", "nmea", 24.94),
        ("02456.4 W", "x", "nmea", -24.94),
        ("-2456.4", "x", "nmea", -24.94),
        (2456.4, "x", "nmea", 24.94),
        ("56.4", "x", "nmea", 0.94),
        (6.0, "x", "nmea", 0.1),
        ("249400000", "x", "e7", 24.94),
        (249400000, "x", "e7", 24.94),
        (-24940000, "x", "e6", -24.94),
        ("2494000", "x", "e5", 24.94),
    ],
)
def test_declared_forms_are_degrees(value, axis, form, degrees):
    assert one(value, axis, form) == pytest.approx(degrees, abs=1e-13)


@pytest.mark.parametrize(
    ("value", "form"), [("6099.0", "nmea"), ("x", "e7"), ("6010.2 E", "nmea")]
)
def test_what_is_no_such_form_is_bad(value, form):
    assert one(value, "y", form) == "bad"


@given(
    st.one_of(st.floats(), st.integers(-(10**18), 10**18)).map(repr),
    st.sampled_from("xy"),
)
def test_a_number_is_read_as_that_number(text, axis):
    assert repr(float(one(text, axis))) == repr(float(text)) or text == "nan"


@given(st.lists(st.text("0123456789°'\":.,NSEW- +nsew\u2032\u2033", max_size=16)))
def test_no_text_raises(texts):
    for axis in "xy":
        for form in ("degrees", "nmea", "e7"):
            coordinates_of(pa.array(texts, pa.string()), axis, form)
    for order in (None, "lat lon"):
        for decimal in ".,":
            points_of(
                pa.array(texts, pa.string()), epsg=4326, order=order, decimal=decimal
            )


@given(LATITUDES)
def test_degrees_minutes_and_seconds_read_back_equal(latitude):
    total = abs(latitude)
    degrees, minutes = int(total), int(total % 1 * 60)
    seconds = (total - degrees - minutes / 60) * 3600
    text = f"{degrees}°{minutes}'{max(min(seconds, 59.9999999), 0):.9f}\"{'S' if latitude < 0 else 'N'}"
    assert one(text) == pytest.approx(latitude, abs=1e-9)


def test_a_decimal_comma_is_read_where_it_is_declared():
    texts = pa.array(["60,17", "60.17", "3.453.123,45", "1,2,3", "60", None])
    assert with_point(texts, ",").to_pylist() == [
        "60.17",
        "60,17",
        "3453123.45",
        "1,2,3",
        "60",
        None,
    ]
    assert with_point(texts, ".").to_pylist() == texts.to_pylist()


def point(text: str, order: str | None = None, decimal: str = ".", **keys) -> object:
    points = points_of(
        pa.array([text]), epsg=4326, order=order, decimal=decimal, **keys
    )
    if points.other[0]:
        return None
    return float(points.x.values[0]), float(points.y.values[0])


@pytest.mark.parametrize(
    ("order", "decimal", "text"),
    [
        ("lat lon", ".", "60.17, 24.94"),
        ("lat lon", ".", "60.17,24.94"),
        ("lat lon", ".", "(60.17 24.94)"),
        ("lat lon", ".", "60.17;24.94"),
        ("lat lon", ".", "60.17,24.94,12.5"),
        ("lon lat", ".", "[24.94, 60.17]"),
        ("lat lon", ",", "60,17; 24,94"),
        ("lat lon", ",", "60,17 24,94"),
        ("lat lon", ",", "60,17, 24,94"),
        (None, ".", "60.17N, 24.94E"),
        (None, ".", "24.94E 60.17N"),
        ("lon lat", ".", "60.17N, 24.94E"),
        (None, ".", "N60.17 E24.94"),
        (None, ",", "60,17N 24,94E"),
        (None, ".", "60°10'12\"N 24°56'24\"E"),
        (None, ".", '{"type":"Point","coordinates":[24.94,60.17]}'),
        (None, ".", '{"coordinates": [24.94, 60.17, 3], "type": "Point"}'),
        (None, ".", "SRID=4326;POINT (24.94 60.17)"),
    ],
)
def test_both_coordinates_in_one_text(order, decimal, text):
    assert point(text, order, decimal) == pytest.approx((24.94, 60.17), abs=1e-13)


@pytest.mark.parametrize(
    ("order", "decimal", "text"),
    [
        (None, ".", "60.17, 24.94"),
        ("lat lon", ".", "60.17"),
        ("lat lon", ".", "1,2,3,4"),
        ("lat lon", ",", "60,17"),
        ("lat lon", ".", "60.17N, 24.94N"),
        (None, ".", '{"type":"LineString","coordinates":[[1,2],[3,4]]}'),
        (None, ".", '{"type":"LineString","coordinates":[1,2]}'),
    ],
)
def test_what_is_no_pair_is_no_point(order, decimal, text):
    assert point(text, order, decimal) is None


def test_on_a_plane_letters_are_no_coordinates():
    assert point("60.17N, 24.94E", in_degrees=False) is None


@given(LONGITUDES, LATITUDES, st.sampled_from(["lat lon", "lon lat"]))
def test_a_place_in_any_form_reads_back_equal(x, y, order):
    first, second = (y, x) if order == "lat lon" else (x, y)
    north, east = "S" if y < 0 else "N", "W" if x < 0 else "E"
    forms = [
        f"{first!r}, {second!r}",
        f"{first!r} {second!r}",
        json.dumps({"type": "Point", "coordinates": [x, y]}),
        shapely.to_wkt(shapely.Point(x, y), rounding_precision=-1),
        shapely.to_wkb(shapely.Point(x, y), hex=True),
        f"{abs(y):.12f}{north} {abs(x):.12f}{east}",
    ]
    for text in forms:
        assert point(text, order) == pytest.approx((x, y), abs=1e-11)


def stream(**keys):
    columns = keys.pop("columns", {"object": "id", "x": "x", "y": "y"})
    table = {"format": "csv", "columns": columns, **keys}
    return stream_of_table("buses", table, "streams.toml")


def fixes(payload: str, settings) -> list[tuple[float, float]]:
    decoded = decode(payload.encode(), settings, arrival_us=0).fixes
    return list(zip(decoded["x"].to_pylist(), decoded["y"].to_pylist(), strict=True))


def test_a_sheet_with_decimal_commas_is_read_with_its_attributes_and_times():
    settings = stream(
        columns={"object": "id", "event_ts": "t", "x": "x", "y": "y"},
        delimiter=";",
        decimal=",",
        time_unit="excel",
        attributes={"speed": "double", "name": "string"},
    )
    payload = "id;t;x;y;speed;name\na;45985,5;24,94;60,17;12,5;1,5\nb;45985,5;24.94;60,17;1,0;x\n"
    decoded = decode(payload.encode(), settings, arrival_us=10**18)
    assert decoded.fixes.drop_columns(
        ["row", "gone", "event_ts", "object"]
    ).to_pylist() == [{"x": 24.94, "y": 60.17, "speed": 12.5, "name": "1,5"}]
    assert decoded.rejects["reason"].to_pylist() == ["bad_number"]


def test_hemispheres_in_columns_of_their_own_are_part_of_the_coordinate():
    settings = stream(
        columns={"object": "id", "x": ["lon", "ew"], "y": ["lat", "ns"]},
        coordinates="nmea",
    )
    payload = "id,lat,ns,lon,ew\na,6010.2,N,02456.4,W\n"
    assert fixes(payload, settings) == [pytest.approx((-24.94, 60.17))]


def test_whole_numbers_are_degrees_where_that_is_declared():
    assert fixes("id,x,y\na,249400000,601700000\n", stream(coordinates="e7")) == [
        (24.94, 60.17)
    ]
    assert fixes("id,x,y\na,249400000,601700000\n", stream()) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"coordinates": "e7", "crs": "EPSG:3067"},
            "coordinates = 'e7' without x and y in degrees",
        ),
        (
            {"coordinates": "e7", "columns": {"object": "id", "place": "p"}},
            "without x and y in degrees",
        ),
        ({"place_order": "lat lon"}, "place_order without place"),
        (
            {"place_order": "xy", "columns": {"object": "id", "place": "p"}},
            "is none of lat lon, lon lat",
        ),
        ({"decimal": ";"}, "is none of ., ,"),
        ({"columns": {"object": "id", "x": ["a", "b"], "y": "b"}}, "x and y are both"),
    ],
)
def test_settings_that_cannot_be_are_refused(keys, said):
    with pytest.raises(ConfigError) as error:
        stream(**keys)
    assert said in error.value.message


def test_the_log_says_these_settings_only_where_they_are_set():
    plain = stream()
    assert not {"decimal", "coordinates", "place_order"} & reading_of(plain).keys()
    settings = stream(
        columns={"object": "id", "x": ["a", "b"], "y": "c"},
        decimal=",",
        coordinates="nmea",
    )
    again = with_reading(plain, reading_of(settings), where="here")
    assert (again.decimal, again.coordinates, again.columns) == (
        ",",
        "nmea",
        settings.columns,
    )
