"""Parameters of a text: a statement for each row of a table, values that stay values, errors that name the cell."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.client import HomeClient
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.query.lookup import queries
from st_common.query.parameter_table import read_table, table_of
from st_common.query.problem import TextError
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    attributes={"line": "string", "load": "double"},
)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "query-language.md"
NEAR = "REGISTER QUERY near_$id AS SELECT * FROM cars WHERE line = $line INSIDE CIRCLE ($x, $y, $r m)"
ROW = {"id": "a", "line": "7", "x": 1, "y": 2, "r": 5}
HOSTILE = (
    "'; DROP QUERY q1; --",
    "O'Hare",
    "' OR ''='",
    '"',
    "*/ /* --",
    "$id",
    "${id}",
    "\\' OR TRUE --",
    "a;\nREGISTER QUERY b AS SELECT * FROM cars",
    "%s {0} \t",
    "\ue000918273645\ue001",
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def client(home: Home) -> HomeClient:
    return HomeClient(home, streams={"cars": CARS}, owner="me", poll_s=0.01)


def plans(text: str, *rows: dict) -> list:
    return [(one.name, one.plan) for one in parse(text, params=table_of(rows))]


def problems(text: str, *rows: dict) -> list[str]:
    with pytest.raises(TextError) as error:
        parse(text, params=table_of(rows))
    return [str(one) for one in error.value.problems]


@pytest.mark.spec("P4")
def test_hostile_values_are_values_and_nothing_else(client: HomeClient, home: Home):
    text = "REGISTER QUERY $q AS SELECT * FROM cars WHERE line = $line"
    rows = [{"q": f"q{at}", "line": line} for at, line in enumerate(HOSTILE)]
    registered = client.register_all(text, params=rows)
    assert [one.id for one in registered] == [(row["q"], 1) for row in rows]
    fixes = ["id,t,x,y,line,load"]
    fixes += [
        f'car{at},{at},0,0,"{line.replace(chr(34), chr(34) * 2)}",1'
        for at, line in enumerate(HOSTILE)
        if "\n" not in line
    ]
    bare_log(home.log("cars")).append("\n".join((*fixes, "")).encode(), arrival_us=0)
    run(home, CARS, until_idle=True)
    told = stream_changes(home, "cars").to_pylist()
    assert sorted((one["query"], one["object"]) for one in told) == sorted(
        (f"q{at}", f"car{at}") for at, line in enumerate(HOSTILE) if "\n" not in line
    )


@pytest.mark.spec("P4")
@tries(60)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
@example([*HOSTILE])
def test_any_text_is_found_again_by_the_condition_that_it_is_bound_in(values):
    text = "REGISTER QUERY q_$n AS SELECT * FROM cars WHERE line = $line"
    bound = plans(text, *({"n": n, "line": one} for n, one in enumerate(values)))
    assert len(bound) == len(values)
    for (_, plan), value in zip(bound, values, strict=True):
        asked = f"SELECT line FROM (SELECT unnest(?) AS line) WHERE {plan.where}"
        assert duckdb.execute(asked, [values]).fetchall() == [(value,)]


@pytest.mark.spec("P4")
@tries(30)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": st.integers(0, 999),
                "line": st.text("ab7 ", min_size=1),
                "x": st.integers(-9, 9) | st.floats(-9, 9),
                "y": st.integers(-9, 9),
                "r": st.floats(0.5, 1e6),
            }
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_bound_values_mean_what_a_text_with_them_means(rows, named):
    number = list(rows[0]).index("x") + 1
    text = NEAR if named else NEAR.replace("$x", f"${number}").replace("$r", "${r}")
    written = [
        f"REGISTER QUERY near_{row['id']} AS SELECT * FROM cars WHERE line = '{row['line']}' "
        f"INSIDE CIRCLE ({row['x']!r}, {row['y']}, {row['r']!r} m)"
        for row in rows
    ]
    assert plans(text, *rows) == [
        (one.name, one.plan) for one in parse(";".join(written))
    ]


def test_a_sign_before_a_negative_value_begins_no_comment():
    ((_, plan),) = plans(
        "REGISTER QUERY q AS SELECT * FROM cars WHERE load > 1 -$a AND line = 'x'",
        {"a": -2},
    )
    assert duckdb.execute(
        f"SELECT load FROM (VALUES ('x', 2.5), ('x', 3.5), ('y', 9.0)) t(line, load) WHERE {plan.where}"
    ).fetchall() == [(3.5,)]


def test_files_and_rows_in_python_say_the_same(tmp_path: Path):
    rows = [{**ROW, "line": "A,1"}, {**ROW, "id": "b", "r": 2.5, "line": "B"}]
    csv = tmp_path / "t.csv"
    csv.write_text(
        'id,line,x,y,r\na,"A,1",1,2,5\n\nb,B,1,2,2.5\n', encoding="utf-8-sig"
    )
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    told = [
        [(one.name, one.plan) for one in parse(NEAR, params=read_table(path))]
        for path in (csv, tmp_path / "t.parquet")
    ]
    assert told == [plans(NEAR, *rows)] * 2
    assert [name for name, _ in told[0]] == ["near_a", "near_b"]


def test_statements_without_parameters_stand_once_and_areas_may_have_them():
    text = """CREATE AREA here AS (0, 0, 9, 9);
        CREATE AREA at_$id AS CIRCLE ($x, $y, $r m);
        -- not $one, nor '$two'
        REGISTER QUERY in_$id AS SELECT * FROM cars WHERE line = '$line' INSIDE (here AND at_$id)"""
    bound = parse(text, params=table_of([ROW, {**ROW, "id": "b c"}]))
    assert [one.name for one in bound] == ["here", "at_a", "at_b c", "in_a", "in_b c"]
    assert bound[-1].areas == ("here", "at_b c")
    assert bound[-1].plan.where == "line = '$line'"


def test_a_number_as_it_is_written_is_a_text_where_it_is_asked_for(tmp_path: Path):
    (tmp_path / "t.csv").write_text("line\n007\n08\n", encoding="utf-8")
    text = "REGISTER QUERY q_$1 AS SELECT * FROM cars WHERE line = $line :: text"
    bound = parse(text, params=read_table(tmp_path / "t.csv"))
    assert [(one.name, one.plan.where) for one in bound] == [
        ("q_007", "line = '007'"),
        ("q_08", "line = '08'"),
    ]


@pytest.mark.spec("P4")
def test_what_is_wrong_with_a_value_names_its_cell(home: Home, client: HomeClient):
    text = f"{NEAR};\nREGISTER QUERY all_$id AS SELECT * FROM cars"
    assert problems(text, ROW, {**ROW, "r": -1}, {**ROW, "x": "east"}) == [
        "params, row 2, column r: a radius is 0 or more, and finite",
        "params, row 3, column x: expected a number, not 'east'",
    ]
    assert problems(text, ROW, {**ROW, "y": None}) == [
        "params, row 2, column y: there is no value (every parameter has one in each row)"
    ]
    with pytest.raises(TextError) as error:
        client.register_all(text, [ROW, {**ROW, "id": "b", "line": 5}])
    assert str(error.value).startswith(
        "line 1, column 53: params, row 2: line is a text, which is compared with a number"
    )
    with pytest.raises(QueryError, match="row 2, column id: query 'near_A' is reg"):
        client.register_all(text, [{**ROW, "id": "A"}, ROW])
    assert not queries(home)


def test_what_is_wrong_with_the_text_is_told_once_at_its_place():
    rows = [{**ROW, "id": at} for at in range(3)]
    assert problems("\n" + NEAR.replace("INSIDE", "INSDE"), *rows)[0].startswith(
        "line 2, column 66: expected"
    )
    assert len(problems(NEAR.replace("INSIDE", "INSDE"), *rows)) == 1
    assert problems(NEAR.replace("$r", "$rr").replace("$x", "$9"), *rows) == [
        "line 1, column 81: there is no column 9 (params has the columns id, line, x, y, r)",
        "line 1, column 89: unknown parameter 'rr' (did you mean r?)",
    ]
    assert "has no parameter" in problems("SELECT * FROM cars", *rows)[0]
    assert "expected a parameter" in problems("SELECT $ 5 FROM cars", *rows)[0]
    with pytest.raises(TextError, match="a parameter without a table of values"):
        parse(NEAR)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,x\n", "has no rows"),
        ("", "has no rows"),
        ("id,x\n1,2,3\n", "line 2 has 3 values, and the first line 2 columns"),
        ("id,ID\n1,2\n", "two columns 'id'"),
        ('id,x\n"1,2\n', "is no CSV"),
    ],
)
def test_a_table_that_is_none_is_refused(content: str, said: str, tmp_path: Path):
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(QueryError, match=said):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("value", [float("nan"), b"x", [1]])
def test_a_value_that_no_literal_says_is_refused(value):
    with pytest.raises(QueryError, match="params, row 2, column r: "):
        table_of([ROW, {**ROW, "r": value}])


def test_rows_with_other_keys_are_refused():
    with pytest.raises(QueryError, match="row 2 has the keys id"):
        table_of([ROW, {"id": 3}])


@pytest.mark.spec("P4")
def test_the_example_of_the_page_registers_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    page = PAGE.read_text(encoding="utf-8")
    text, table, written = (
        page.partition(f"```{kind}\n")[2].partition("```")[0]
        for kind in ("sql parameters", "csv parameters", "sql registered")
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(
        '[streams.taxis]\nformat = "csv"\ncolumns = { object = "id", x = "x", y = "y" }\n'
        'attributes = { driver = "string" }\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("near.sql").write_text(text, encoding="utf-8")
    Path("shops.csv").write_text(table, encoding="utf-8")
    told = CliRunner().invoke(
        app, ["query", "register", "near.sql", "--params", "shops.csv"]
    )
    assert (
        told.stdout == "registered near_station (version 1), near_O'Hare (version 1)\n"
    )
    assert {(row.name, row.plan) for row in queries(Home(tmp_path))} == {
        (one.name, one.plan) for one in parse(written)
    }
    Path("shops.csv").write_text(table.replace("800", "-800"), encoding="utf-8")
    told = CliRunner().invoke(
        app, ["query", "check", "near.sql", "--params", "shops.csv"]
    )
    assert "shops.csv, line 3, column reach: a radius is 0 or more, and finite" in str(
        told.output
    )


EAST = timezone(timedelta(hours=2))
TIMES = [
    (datetime(2024, 4, 30, 10, tzinfo=EAST), "2024-04-30T08:00:00Z"),
    (datetime(2024, 4, 30, 8), "2024-04-30T08:00:00Z"),  # noqa: DTZ001 - without a zone
    (datetime(2024, 4, 30, 8, 0, 0, 5, UTC), "2024-04-30T08:00:00.000005Z"),
    (date(2024, 4, 30), "2024-04-30"),
]


@pytest.mark.spec("X12")
@pytest.mark.parametrize(("value", "written"), TIMES)
def test_times_of_python_and_parquet_are_bound_as_texts_in_utc(
    tmp_path, value, written
):
    text = "REGISTER QUERY q AS SELECT * FROM cars WHERE event_ts > $t FROM $t"
    (plain,) = parse(text.replace("$t", f"'{written}'"))
    file = tmp_path / "times.parquet"
    parquet.write_table(pa.table({"t": pa.array([value])}), file)
    for table in (table_of([{"t": value}]), read_table(file)):
        (bound,) = parse(text, params=table)
        assert (bound.plan, bound.beginning) == (plain.plan, plain.beginning)
        assert written in bound.plan.where
