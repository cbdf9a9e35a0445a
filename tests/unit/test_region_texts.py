"""Regions as people write them: with PostGIS's system, with arcs, with borders that are none; words are ours."""

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.ran_home import ran_home

CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
engine = "local"
"""
RING = "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    home = ran_home(tmp_path_factory.mktemp("home"), CONF, "s", "id,t,lon,lat\n")

    def said(text):
        words = ("query", "check", "--text", text)
        done = CliRunner().invoke(app, words, env={"FAIRWAY_HOME": str(home.root)})
        return done.exit_code, done.output + (done.stderr or "")

    return said


@pytest.mark.parametrize(
    ("clause", "says"),
    [
        (f"INSIDE 'SRID=4326;{RING}'", None),
        ("INSIDE CORRIDOR ('srid=4326; LINESTRING(0 0, 1 1)', 5 m)", None),
        (f"[RANGE BY 'SRID=4326;{RING}' RATTR SPACE]", None),
        (f"INSIDE 'SRID=25832;{RING}'", "SRID=25832 is another system than the stream's EPSG:4326"),
        (f"INSIDE ('{RING}' AND NOT 'SRID=4;{RING}')", "SRID=4 is another system"),
        (f"[RANGE BY 'SRID=25832;{RING}' RATTR SPACE]", "SRID=25832 is another system"),
        ("INSIDE 'CURVEPOLYGON(CIRCULARSTRING(0 0,4 0,4 4,0 4,0 0))'", "without arcs"),
        ("INSIDE 'POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))'", "its border crosses itself at (1, 1)"),
        ("INSIDE 'POLYGON((0 0, 1 1, nan 3, 0 0))'", "a coordinate is not finite"),
        ("INSIDE CORRIDOR ('LINESTRING(0 0)', 5 m)", "this is no WKT"),
    ],
)  # fmt: skip
def test_a_region_is_read_or_refused_in_our_words(checked, clause, says):
    code, shown = checked(f"REGISTER QUERY q AS SELECT * FROM s {clause}")
    assert code == (0 if says is None else 2), shown
    assert says is None or says in shown
    assert not any(word in shown for word in ("Exception", "Error:", "encountered"))


def test_of_queries_that_are_alike_each_is_asked_for_its_own_system(checked):
    like = "REGISTER QUERY q{} AS SELECT * FROM s INSIDE 'SRID={};" + RING + "'"
    code, shown = checked(";".join(like.format(*of) for of in ((1, 4326), (2, 25832))))
    assert code == 2
    assert "SRID=25832" in shown


def test_an_area_is_of_no_stream_and_so_of_no_system(checked):
    code, shown = checked(f"CREATE AREA a AS 'SRID=4326;{RING}'")
    assert (code, "an area is of no stream" in shown) == (2, True)


def test_a_window_as_a_function_is_answered_with_how_windows_are_written(checked):
    text = "REGISTER QUERY q AS SELECT COUNT(*) FROM s GROUP BY WINDOW(5 min)"
    code, shown = checked(text)
    assert (code, "[RANGE '5 min', SLIDE '5 min']" in shown) == (2, True)
