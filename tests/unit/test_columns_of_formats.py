"""Columns that a format has and a stream does not keep: whoever asks about one is told how to keep it."""

import re
from pathlib import Path

import pytest

from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.errors import FairwayError
from st_common.formats.registry import FORMATS, format_of
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.storage import make_folder

ROOT = Path(__file__).parents[2]
SHIPS = {
    "format": "ais",
    "columns": {"object": "mmsi", "event_ts": "time", "knots": "sog"},
    "attributes": {"name": "string", "knots": "double knots"},
}
LINES = {
    "format": "csv",
    "columns": {"object": ["line", "run"], "event_ts": "at", "x": "lon", "y": "lat"},
}


def said(tmp_path, query, table=SHIPS):
    """The first error of a query over a stream `s`."""
    make_folder(tmp_path)
    stream = stream_of_table("s", table, Path("streams.toml"))
    statements = parse(f"REGISTER QUERY q AS {query}")
    with pytest.raises(FairwayError) as caught:
        register(Home(tmp_path), {"s": stream}, statements, owner="me")
    return str(caught.value)


@pytest.mark.parametrize(
    ("query", "column", "kept"),
    [
        ("SELECT * FROM s WHERE COG > 90", "cog", 'cog = "double"'),
        ("SELECT AVG(draught) FROM s", "draught", 'draught = "double m"'),
        ("SELECT imo FROM s", "imo", 'imo = "long"'),
        ("SELECT COUNT(*) FROM s GROUP BY shiptype", "shiptype", 'shiptype = "long"'),
        (
            "SELECT * FROM s WHERE name = destination",
            "destination",
            'destination = "string"',
        ),
        (
            "SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 9 m) WHERE b.heading > 3",
            "heading",
            'heading = "long"',
        ),
        ("SELECT * FROM s WHERE length > 100 m FOR 1 min", "length", '"long m"'),
    ],
)
def test_who_asks_about_a_column_that_is_not_kept_is_told_how_to_keep_it(
    tmp_path, query, column, kept
):
    message = said(tmp_path, query)
    assert f"stream 's' does not keep '{column}', which ais has" in message
    assert "attributes = { " in message
    assert kept in message


@pytest.mark.parametrize(
    ("query", "table", "column", "own"),
    [
        ("SELECT * FROM s WHERE mmsi = '1'", SHIPS, "mmsi", "object"),
        ("SELECT sog FROM s", SHIPS, "sog", "knots"),
        ("SELECT * FROM s WHERE Latitude > 3", SHIPS, "latitude", "y"),
        ("SELECT * FROM s WHERE run > '3'", LINES, "run", "object"),
        ("SELECT at FROM s", LINES, "at", "event_ts"),
    ],
)
def test_who_asks_by_the_name_in_the_records_is_told_the_name_in_the_stream(
    tmp_path, query, table, column, own
):
    message = said(tmp_path, query, table)
    assert f"stream 's' reads '{column}' as {own} (ask {own})" in message


def test_a_name_that_is_nearly_one_of_the_format_is_taken_for_that(tmp_path):
    message = said(tmp_path, "SELECT * FROM s WHERE draugt > 3")
    assert "unknown column 'draugt' (did you mean draught?)" in message
    assert "(known columns:" in said(tmp_path, "SELECT * FROM s WHERE zzz > 3")
    assert "draught" not in said(tmp_path, "SELECT * FROM s WHERE zzz > 3")


@pytest.mark.parametrize(
    "name", sorted(name for name in FORMATS if format_of(name).known)
)
def test_all_columns_of_a_format_can_be_kept_as_they_are_declared(name):
    known = dict(format_of(name).known)
    table = {
        "format": name,
        "columns": {
            **({"x": "lon", "y": "lat"} if name == "gpx" else {}),
            "object": next(iter(known)),
            "event_ts": "timestamp" if name == "gtfs-rt" else "time",
        },
        "attributes": {f"kept_{one}": of_type for one, of_type in known.items()},
    }
    if name in ("hfp", "opensky"):
        table["columns"]["event_ts"] = "tst" if name == "hfp" else "last_contact"
    table["columns"] |= {f"kept_{one}": one for one in known}
    stream = stream_of_table("s", table, Path("streams.toml"))
    assert len(stream.attributes) == len(known)
    assert format_of(name).offers.items() <= known.items()


@pytest.mark.parametrize(
    "name", sorted(set(FORMATS) & {"ais", "sbs1", "gtfs-rt", "hfp", "nmea"})
)
def test_the_page_of_formats_names_every_column(name):
    page = (ROOT / "docs/formats.md").read_text()
    section = next(
        part for part in page.split("\n## ") if f'format = "{name}"' in part[:400]
    )
    named = set(re.findall(r"`(\w+)`", section))
    assert set(format_of(name).known) <= named
