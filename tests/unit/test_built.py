"""What was built, or read from JSON, is registered as it is: its text is printed, and nothing is parsed again."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.client import HomeClient
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query.builder import circle, query
from st_common.query.builder.replay import rebuilt
from st_common.query.built import statement_of
from st_common.query.checks import complaints
from st_common.query.grammar import reading
from st_common.query.lookup import find, queries
from st_common.query.names import resolved
from st_common.query.plan import Aggregate, Plan
from st_common.query.plan_expressions import expressions_of
from st_common.query.plan_json import built_from_json, places_in
from st_common.query.problem import TextError
from st_common.query.registry import check
from st_common.query.terms import problems_of, types_of
from st_common.query.text import parse
from tests.kit.oracle_rows import ATTRIBUTES
from tests.kit.random_grid import LAYER, STREAM
from tests.kit.random_plans import plan_of

COLUMNS = Columns(object="id", x="x", y="y")
CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=COLUMNS,
    crs="EPSG:4326",
    attributes={"line": "string", "load": "double"},
)
CONF = """
[streams.cars]
format = "csv"
columns = { object = "id", x = "lon", y = "lat" }
attributes = { line = "string", load = "double" }
"""
LOADED = (
    query("cars")
    .inside((0, 0, 10, 10))
    .where("LOAD > 3 AND line = North")
    .select("Line", twice="load * 2")
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    return Home(tmp_path)


@pytest.fixture
def client(home: Home) -> HomeClient:
    return HomeClient(home, streams={"cars": CARS}, owner="me")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the parser began, by the rule of the grammar that it began with."""
    counts: Counter[str] = Counter()
    parser = reading.stack_behind

    def counting(tokens, start):
        counts[start] += 1
        return parser(tokens, start)

    monkeypatch.setattr(reading, "stack_behind", counting)
    return counts


STATEMENTS = ("statement", "explained")


@pytest.mark.spec("B14")
@pytest.mark.parametrize("what", [LOADED, LOADED.build()], ids=["builder", "plan"])
def test_a_client_parses_no_statement_of_what_is_built(
    client: HomeClient, home: Home, begun: Counter[str], what
):
    client.register(what, "built")
    assert not any(begun[start] for start in STATEMENTS)
    row = find(home, "built")
    client.register(row.text.replace("built", "written"))
    assert begun["statement"]  # the counter counts
    assert find(home, "written").plan == row.plan


@pytest.mark.spec("B14")
def test_the_command_line_parses_no_statement_of_a_plan(
    home: Home, begun: Counter[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    value = json.dumps(LOADED.build().to_json())
    for more in ((), ("--replace",)):
        done = CliRunner().invoke(
            app,
            ["query", "register", "--plan", "-", "--name", "built", *more],
            input=value,
        )
        assert done.exit_code == 0, done.stderr
    assert not any(begun[start] for start in STATEMENTS)
    row = find(home, "built")
    assert row.version == 2
    assert row.text.startswith("REPLACE QUERY built AS SELECT")


def wide(stream: StreamSettings) -> tuple[dict[str, StreamSettings], tuple[str, ...]]:
    return {stream.name: stream}, (LAYER,)


def meant(statement, stream: StreamSettings):
    """What becomes of a statement on its stream: its plan by the names that are declared, and what is wrong."""
    streams, layers = wide(stream)
    done = resolved(statement, streams, layers, lambda _: (), lambda _: None)
    types = types_of([done.statement], streams)
    problems = problems_of(done.statement, stream, types)
    return (
        done.statement.plan,
        [each.message for each in done.notices],
        sorted(each.message for each in (*done.problems, *problems)),
    )


@pytest.mark.spec("B14", "X5")
@example(seed=1292, upper=False, fewer=False)  # LEFT JOIN .. AND grid.kind <> ..
@given(seed=st.integers(0, 10**6), upper=st.booleans(), fewer=st.booleans())
def test_what_is_built_means_what_its_text_means(seed: int, upper: bool, fewer: bool):
    plan = plan_of(Random(seed), layers=True)
    of_plan = [text for _, text in expressions_of(plan)]
    assume(not any("epoch_us" in text for text in of_plan))  # the oracle's own
    assume(plan.join is None or "kind" not in dict(plan.join.tags))
    known = {
        (name.upper() if upper else name): type_ for name, type_ in ATTRIBUTES.items()
    }
    if fewer:
        known = dict(list(known.items())[:1])
    stream = StreamSettings(
        name=STREAM, format="csv", columns=COLUMNS, crs="planar", attributes=known
    )
    assume(not list(complaints(plan, stream)))
    built = statement_of(rebuilt(plan), "q")
    (written,) = parse(built.text)
    assert meant(built, stream) == meant(written, stream)


@pytest.mark.parametrize(
    ("built", "says"),
    [
        (
            query("cars").where("lod > 3"),
            "where(..):1:1: unknown column 'lod' (did you mean load?)",
        ),
        (  # a word alone would be read as a text here
            query("cars").where("cars.north = line"),
            "where(..):1:1: unknown column 'north'",
        ),
        (
            query("cars").where("load > 3").select("line", twice="load +\n lod"),
            "select(..):2:2: unknown column 'lod' (did you mean load?)",
        ),
        (
            query("cars").sum("load").group_by("lin"),
            "group_by(..):1:1: unknown column 'lin' (did you mean line?)",
        ),
        (
            query("cars").sum("lod").group_by("line"),
            "sum(..):1:1: unknown column 'lod' (did you mean load?)",
        ),
        (query("cras"), "query(..): unknown stream 'cras' (did you mean cars?)"),
        (
            query("cars").in_space((200, 0, 201, 1)),
            "in_space(..): the box lies off the Earth",
        ),
        (
            query("cars").inside(circle(200, 0, 5)),
            "inside(..): the centre of the circle lies off the Earth",
        ),
        (
            query("cars").join("parks").on_within(),
            "on_within(): unknown layer 'parks'",
        ),
    ],
)
def test_what_is_wrong_is_told_by_the_step_that_said_it(
    client: HomeClient, home: Home, built, says: str
):
    with pytest.raises(TextError) as caught:
        client.register(built, "q")
    assert str(caught.value).startswith(says)
    assert queries(home) == []


def test_the_place_in_what_a_step_was_given_is_shown(client: HomeClient):
    with pytest.raises(TextError) as caught:
        client.register(query("cars").where("load > 3 AND lod < 5"), "q")
    assert caught.value.details == "  load > 3 AND lod < 5\n               ^^^"


def test_a_name_that_is_taken_needs_no_place(client: HomeClient):
    client.register(LOADED, "q")
    with pytest.raises(TextError, match=r"^query 'q' is registered already"):
        client.register(LOADED, "q")
    with pytest.raises(QueryError, match="is no name for a query"):
        client.register(LOADED, " q")


def test_of_json_the_part_is_named(home: Home):
    plan = {"v": 3, "stream": "cars", "where": "lod > 3", "columns": [["a", "lin"]]}
    built = built_from_json(json.dumps(plan))
    statement = statement_of(built, "q", places=places_in("plan.json"))
    with pytest.raises(TextError) as caught:
        check(home, {"cars": CARS}, [statement])
    assert [str(each) for each in caught.value.problems] == [
        "plan.json: $.where:1:1: unknown column 'lod' (did you mean load?)",
        "plan.json: $.columns:1:1: unknown column 'lin' (did you mean line?)",
    ]


@pytest.mark.parametrize(
    "build",
    [
        lambda one: one.average_speed().select("line"),
        lambda one: one.select("line").average_speed(),
    ],
)
def test_columns_beside_an_average_speed_are_refused_and_not_dropped(build):
    with pytest.raises(QueryError, match="columns and an aggregate exclude each other"):
        build(query("cars").last("5 km"))
    plan = query("cars").last("5 km").average_speed().build().to_json()
    with pytest.raises(QueryError, match="columns and an aggregate exclude each other"):
        built_from_json(json.dumps({**plan, "columns": [["line", "line"]]}))


def test_a_plan_with_columns_beside_an_aggregate_is_refused():
    plan = Plan(
        stream="cars", columns=(("a", "a"),), aggregate=Aggregate(function="count")
    )
    (found,) = complaints(plan, CARS)
    assert found.message == "columns and an aggregate exclude each other"


@pytest.mark.spec("B14")
def test_an_unknown_column_of_the_other_object_is_called_as_in_a_text(
    client: HomeClient,
):
    pairs = query("cars").join("cars").on_dwithin(5)
    with pytest.raises(TextError) as caught:
        client.register(pairs.where('"other.lod" > 3'), "q")
    assert "unknown column 'other.lod' (did you mean other.load?)" in str(caught.value)
