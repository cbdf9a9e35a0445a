"""What would register and answer nothing, or something else: refused with the way out, wherever a query is read."""

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.ran_home import ran_home

CONF = """
[streams.cranes]
format = "csv"
columns = { object = "id", event_ts = "t", box = ["x0", "x1", "y0", "y1"] }
crs = "planar"
time_unit = "s"
engine = "local"

[streams.walks]
format = "csv"
columns = { object = "id", event_ts = "t", shape = "way" }
crs = "planar"
time_unit = "s"
engine = "local"

[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { load = "double" }
crs = "planar"
time_unit = "s"
engine = "local"
"""


@pytest.fixture(scope="module")
def says(tmp_path_factory):
    home = ran_home(tmp_path_factory.mktemp("home"), CONF, "taxis", "id,t,x,y,load\n")
    environment = {"FAIRWAY_HOME": str(home.root)}

    def said(*words):
        done = CliRunner().invoke(app, words, env=environment)
        return done.exit_code, done.output + (done.stderr or "")

    return said


@pytest.mark.spec("B1", "B8")
@pytest.mark.parametrize("stream", ["cranes", "walks"])
@pytest.mark.parametrize(
    ("clauses", "name"),
    [
        ("KNN (3, 1, 1)", "KNN"),
        ("INSIDE (0, 0, 5, 5) KNN ('M', 3, 'a')", "KNN"),
        ("INSIDE ('M', 'a', 5, 5)", "INSIDE a region that goes with an object"),
        ("s JOIN {stream} b ON ST_DWithin(s, b, 5 m)", "ST_DWithin"),
        ("s JOIN parks p ON ST_Intersects(s, p)", "a join with a layer"),
        ("s WHERE EXISTS (SELECT 1 FROM parks p WHERE ST_DWithin(s, p, 5 m))", "a join with a layer"),
        ("[RANGE BY 50 km RATTR SPACE]", "RANGE BY"),
        ("[RANGE BY 'POLYGON((0 0, 9 0, 9 9, 0 0))' RATTR SPACE]", "RANGE BY"),
        ("WILL ENTER (0, 0, 5, 5) WITHIN 1 hour", "WILL ENTER"),
        ("USING enlarge(5 m) COMPARE WITH (0, 0, 5, 5)", "USING"),
    ],
)  # fmt: skip
def test_what_looks_at_places_is_refused_where_elements_are_more(
    says, stream, clauses, name
):
    asked = f"SELECT * FROM {stream} {clauses.format(stream=stream)}"
    for words in (
        ("query", "check", "--text", f"REGISTER QUERY q AS {asked}"),
        ("query", "register", "--text", f"REGISTER QUERY q AS {asked}"),
        ("query", "check", "--text", f"EXPLAIN {asked}"),
    ):
        code, shown = says(*words)
        assert code == 2, shown
        assert f"{name} looks at places, and the elements of stream" in shown
        assert f"CREATE STREAM middles AS SELECT x, y FROM {stream}" in shown


@pytest.mark.spec("B1")
def test_the_way_out_is_one(says):
    text = (
        "CREATE STREAM middles AS SELECT x, y FROM cranes;"
        "REGISTER QUERY near AS SELECT * FROM middles KNN (3, 1, 1)"
    )
    assert says("query", "register", "--text", text)[0] == 0


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("INSIDE ('M', 'cranes.a', 5 m)", "elements of stream 'cranes' have an extent"),
        ("KNN ('M', 3, 'Cranes.a')", "elements of stream 'cranes' have an extent"),
        ("WHERE load > 1 KNN (3, 1, 1) WITH (plan = 'space_first')", "plan = 'space_first' and KNN"),
        ("WHERE load > 1 INSIDE ('M', 'a', 5 m) WITH (plan = 'space_first')", "a region that goes with"),
        ("a JOIN taxis b ON ST_DWithin(a, b, 5 m) WITH (plan = 'space_first')", "pairs of objects"),
        ("[RANGE '1 hour'] WITH (plan = 'select_first')", "a window in brackets"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_or_never_hold_is_refused(says, clauses, message):
    code, shown = says(
        "query", "check", "--text", f"REGISTER QUERY q AS SELECT * FROM taxis {clauses}"
    )
    assert code == 2
    assert message in shown
