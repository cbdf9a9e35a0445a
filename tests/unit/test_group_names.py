"""Streams and layers called group.table: in queries, in SQL, on the command line and in completion (SPEC B2)."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
import shapely

from st_common import tables
from st_common.answers.completion import completions
from st_common.answers.names_known import Known
from st_common.answers.sql import sql
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import load_contract
from st_common.errors import QueryError
from st_common.layers.rows import layer_rows
from st_common.partitioning.regions import whole
from st_common.query.area_store import HomeAreas
from st_common.query.created_streams import created_streams
from st_common.query.lookup import find
from st_common.query.problem import TextError
from st_common.query.registry import carry_out, fitted, register
from st_common.query.text import parse
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Feature

pytestmark = pytest.mark.spec("B2")

GROUPS = {"buses": "metro", "sea-ships": "metro", "taxis": "city", "planes": "default"}
LAYERS = {"roads": "metro", "parks": "city"}
STREAM = """
[streams.{name}]
format = "csv"
columns = {{object = "id", x = "x", y = "y", event_ts = "t"}}
attributes = {{speed = "double", zone = "string"}}
group = "{group}"
"""
SQUARE = shapely.box(0, 0, 1, 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A home with streams and layers in three groups, and its settings."""
    folder = tmp_path_factory.mktemp("groups")
    home, conf = Home(folder / "home"), folder / "conf"
    conf.mkdir()
    texts = [STREAM.format(name=name, group=group) for name, group in GROUPS.items()]
    (conf / "streams.toml").write_text("".join(texts))
    for name, group in LAYERS.items():
        kept = features_of([Feature("f1", "way", SQUARE, {"name": "n"})])
        rows = layer_rows(kept, whole(group))
        tables.replace(home.table("layers", name), rows, load_contract("layers"))
    for name in GROUPS:
        fix = load_contract("positions").arrow_schema().empty_table()
        tables.append(home.table("positions", name), fix, load_contract("positions"))
    return home, conf, load_streams(conf)


def understood(place, text):
    """The plan of a SELECT with its names resolved."""
    home, _, streams = place
    statements = parse(text, areas=HomeAreas(home))
    ((one,), _) = fitted(home, streams, statements)
    return one.plan


def refused(place, text):
    with pytest.raises(TextError) as raised:
        understood(place, text)
    return [(one.message, one.hint, one.column) for one in raised.value.problems]


@pytest.mark.parametrize(
    ("grouped", "plain"),
    [
        ("SELECT * FROM metro.buses", "SELECT * FROM buses"),
        ("SELECT * FROM METRO.Buses WHERE speed > 3", "SELECT * FROM buses WHERE speed > 3"),
        (
            "SELECT object, buses.speed FROM metro.buses WHERE metro.buses.speed > 3",
            "SELECT object, speed FROM buses WHERE speed > 3",
        ),
        ('SELECT * FROM metro."sea-ships"', 'SELECT * FROM "sea-ships"'),
        ("SELECT * FROM default.planes p", "SELECT * FROM planes p"),
        (
            "SELECT * FROM metro.buses JOIN metro.roads ON ST_DWithin(metro.buses, metro.roads, 5 m)"
            " WHERE metro.roads.name = 'n'",
            "SELECT * FROM buses JOIN roads ON ST_DWithin(buses, roads, 5 m) WHERE roads.name = 'n'",
        ),
        (
            "SELECT * FROM buses b JOIN city.parks p ON ST_Intersects(b, p)",
            "SELECT * FROM buses b JOIN parks p ON ST_Intersects(b, p)",
        ),
        (
            "SELECT * FROM metro.buses a JOIN metro.buses b ON ST_DWithin(a, b, 5 m)",
            "SELECT * FROM buses a JOIN buses b ON ST_DWithin(a, b, 5 m)",
        ),
        (
            "SELECT * FROM buses a JOIN metro.buses b ON ST_DWithin(a, b, 5 m)",
            "SELECT * FROM buses a JOIN buses b ON ST_DWithin(a, b, 5 m)",
        ),
        (
            "SELECT * FROM metro.buses WHERE EXISTS"
            " (SELECT 1 FROM metro.roads r WHERE ST_Intersects(buses, r))",
            "SELECT * FROM buses WHERE EXISTS (SELECT 1 FROM roads r WHERE ST_Intersects(buses, r))",
        ),
        (
            "SELECT * FROM metro.buses INSIDE FEATURE (city.parks, 'f1')",
            "SELECT * FROM buses INSIDE FEATURE (parks, 'f1')",
        ),
        (
            "SELECT * FROM metro.buses INSIDE FEATURE (city.parks, buses.zone)",
            "SELECT * FROM buses INSIDE FEATURE (parks, buses.zone)",
        ),
        (
            "SELECT AVG(b.speed) AS s FROM metro.buses a JOIN buses b ON ST_DWithin(a, b, 9 m) GROUP BY b.zone",
            "SELECT AVG(b.speed) AS s FROM buses a JOIN buses b ON ST_DWithin(a, b, 9 m) GROUP BY b.zone",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT object, speed FROM metro.buses)",
            "SELECT COUNT(*) FROM (SELECT object, speed FROM buses)",
        ),
    ],
)  # fmt: skip
def test_a_name_with_its_group_means_what_it_means_alone(place, grouped, plain):
    plan = understood(place, grouped)
    assert plan == understood(place, plain)
    assert "." not in plan.stream


@pytest.mark.parametrize(
    ("text", "message", "hint", "column"),
    [
        (
            "SELECT * FROM city.buses",
            "stream 'buses' is in group 'metro', not in 'city'",
            "write metro.buses, or buses alone",
            15,
        ),
        (
            "SELECT * FROM nowhere.planes",
            "stream 'planes' is in group 'default', not in 'nowhere'",
            "write default.planes, or planes alone",
            15,
        ),
        (
            "SELECT * FROM metro.busses",
            "unknown stream 'metro.busses'",
            "did you mean metro.buses?",
            15,
        ),
        (
            "SELECT * FROM buses JOIN city.roads ON ST_Intersects(buses, roads)",
            "layer 'roads' is in group 'metro', not in 'city'",
            "write metro.roads, or roads alone",
            26,
        ),
        (
            "SELECT * FROM buses a JOIN city.buses b ON ST_DWithin(a, b, 5 m)",
            "stream 'buses' is in group 'metro', not in 'city'",
            "write metro.buses, or buses alone",
            15,
        ),
        (
            "SELECT * FROM buses INSIDE FEATURE (metro.parks, 'f1')",
            "layer 'parks' is in group 'city', not in 'metro'",
            "write city.parks, or parks alone",
            37,
        ),
        (
            "SELECT * FROM metro.buses WHERE city.buses.speed > 3",
            "expected a column",
            "buses.name, or name alone",
            33,
        ),
    ],
)
def test_a_name_in_another_group_says_in_which_it_is(
    place, text, message, hint, column
):
    assert (message, hint, column) in refused(place, text)


def test_a_stream_of_another_group_is_no_layer(place):
    text = "SELECT * FROM metro.buses a JOIN city.taxis b ON ST_DWithin(a, b, 5 m)"
    ((message, hint, _),) = refused(place, text)
    assert message == "unknown layer 'city.taxis'"
    assert hint == "it is a stream; a query joins layers, or its own stream"


def test_a_dot_within_a_part_of_a_name_is_refused(place):
    for text in ('SELECT * FROM "a.b.c"', 'SELECT * FROM ".buses"', "SELECT * FROM a.b.c"):  # fmt: skip
        with pytest.raises(TextError):
            parse(text)


def test_a_layer_from_before_groups_says_what_to_do(place, tmp_path):
    _, _, streams = place
    home = Home(tmp_path)
    kept = features_of([Feature("f1", "way", SQUARE, {})])
    rows = layer_rows(kept, whole("metro"))
    column = rows.schema.get_field_index("region_group")
    none = pa.nulls(len(rows), pa.string())
    rows = rows.set_column(column, "region_group", none)
    tables.replace(home.table("layers", "roads"), rows, load_contract("layers"))
    text = "SELECT * FROM buses b JOIN metro.roads r ON ST_Intersects(b, r)"
    ((message, hint, _),) = refused((home, None, streams), text)
    assert message == "layer 'roads' does not say in which group it is"
    assert hint == "load it again, or write roads alone"


def test_the_text_stays_as_it_was_written_and_the_plan_has_the_plain_names(
    place, tmp_path
):
    _, _, streams = place
    home = Home(tmp_path)
    text = "REGISTER QUERY q AS SELECT * FROM Metro.buses WHERE buses.speed > 3"
    register(home, streams, parse(text), owner="ada")
    row = find(home, "q")
    assert (row.text, row.stream) == (text, "buses")
    assert row.plan.stream == "buses"


def test_a_created_stream_is_dropped_by_both_names(place, tmp_path):
    _, _, streams = place
    home = Home(tmp_path)
    made = "CREATE STREAM fast AS SELECT object, x, y FROM metro.buses WHERE speed > 9"
    carry_out(home, streams, parse(made), owner="ada")
    known = dict(streams) | {"fast": replace(streams["planes"], name="fast")}
    for end in ("", "IF EXISTS "):
        with pytest.raises(TextError) as raised:
            carry_out(home, known, parse(f"DROP STREAM {end}city.fast"), owner="ada")
        (problem,) = raised.value.problems
        assert problem.message == "stream 'fast' is in group 'default', not in 'city'"
        assert problem.hint == "write default.fast, or fast alone"
    assert created_streams(home)
    carry_out(home, known, parse("DROP STREAM default.fast"), owner="ada")
    assert not created_streams(home)


def rows_of(place, text):
    home, _, streams = place
    return sql(home, text, lambda: streams).to_pylist()


def test_sql_has_a_schema_for_each_group(place):
    names = {row["name"] for row in rows_of(place, "SHOW TABLES")}
    assert {
        "metro.buses",
        "metro.roads",
        "metro.positions_buses",
        "city.parks",
    } <= names
    assert {"metro.sea_ships", "metro.layer_roads", "default.planes"} <= names
    assert not {"city.buses", "metro.taxis", "metro.parks"} & names
    assert rows_of(place, "SELECT fid FROM metro.roads") == [{"fid": "f1"}]
    joined = "SELECT r.fid FROM metro.layer_roads r LEFT JOIN metro.buses b ON true"
    assert rows_of(place, joined) == rows_of(place, "SELECT fid FROM layer_roads")
    assert rows_of(place, 'SELECT count(*) AS n FROM "default".planes') == [{"n": 0}]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("city.roads", "'roads' is in group 'metro', not in 'city'", "write metro.roads"),
        ("metrol.roads", "'roads' is in group 'metro', not in 'metrol'", "write metro.roads"),
        ("metrol.nothing", "there is no group 'metrol' of tables", "did you mean metro?"),
        ("metro.road", "group 'metro' has no table 'road'", "did you mean roads?"),
    ],
)  # fmt: skip
def test_sql_says_in_which_group_a_table_is(place, name, message, hint):
    with pytest.raises(QueryError) as raised:
        rows_of(place, f"SELECT * FROM {name}")
    assert (raised.value.message, raised.value.hint) == (message, hint)


def completed(place, text):
    home, _, streams = place
    _, options = completions(Known(home, streams), text, len(text))
    return {(one.text, one.about) for one in options if one.about}


def test_groups_and_what_is_in_them_are_completed(place):
    assert {("buses", "stream"), ("metro.", "group"), ("city.", "group")} <= completed(
        place, "SELECT * FROM "
    )
    assert ("default.", "group") not in completed(place, "SELECT * FROM ")
    assert completed(place, "SELECT * FROM metro.") == {
        ("buses", "stream"),
        ('"sea-ships"', "stream"),
    }
    assert completed(place, "SELECT * FROM metro.b") == {("buses", "stream")}
    behind = completed(place, "SELECT * FROM metro.buses JOIN metro.")
    assert behind == {
        ("buses", "stream"),
        ('"sea-ships"', "stream"),
        ("roads", "layer"),
    }
    assert completed(place, "SELECT * FROM buses INSIDE FEATURE (city.") == {
        ("parks", "layer")
    }
    of_stream = completed(place, "SELECT * FROM metro.buses WHERE sp")
    assert ("speed", "column") in of_stream


@pytest.fixture
def command(place):
    from typer.testing import CliRunner

    from st_common.cli import app

    home, conf, _ = place
    where = ["--home", str(home.root), "--conf", str(conf)]
    return lambda *words: CliRunner().invoke(app, [*where, *words])


def test_commands_take_a_name_with_its_group(place, command):
    home, _, streams = place
    text = (
        "REGISTER QUERY IF NOT EXISTS near AS SELECT * FROM buses b JOIN roads r "
        "ON ST_Intersects(b, r)"
    )
    register(home, streams, parse(text), owner="ada")
    listed = command("query", "list", "--stream", "metro.buses")
    assert listed.exit_code == 0
    assert "metro.buses" in listed.stdout
    told = json.loads(command("query", "list", "--json").stdout)
    assert (told["stream"], told["group"]) == ("buses", "metro")
    explained = command("explain", "near").stdout
    assert "tables    metro.buses, metro.roads" in explained
    shown = command("layer", "show", "metro.roads")
    assert shown.exit_code == 0
    assert shown.stdout == command("layer", "show", "roads").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("objects", "city.buses"),
            "stream 'buses' is in group 'metro', not in 'city'",
        ),
        (("layer", "show", "city.roads"), "layer 'roads' is in group 'metro'"),
        (("query", "list", "--stream", "metro.none"), "unknown stream 'metro.none'"),
    ],
)
def test_commands_say_in_which_group_a_name_is(command, words, said):
    done = command(*words)
    assert done.exit_code == 2
    assert said in done.stderr
