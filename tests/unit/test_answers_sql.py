"""SQL over a home: every table is a view, nothing else can be reached, nothing can be changed."""

import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import h3
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from st_common.answers.sql import sql
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.journal import Journal
from st_common.errors import QueryError
from st_common.query.registry import register
from st_common.query.text import parse

TS = datetime(2024, 5, 1, 23, 30, tzinfo=UTC)
STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y")
    )
    for name in ("taxis", "sea-ships")
}


def changes(*objects: str, position: int = 0) -> pa.Table:
    rows = [
        {
            "event_date": TS.date(),
            "position": position + n,
            "seq": 0,
            "event_ts": TS,
            "query_version": 1,
            "sign": 1,
            "query": "q",
            "object": name,
            "cause": "enter",
        }
        for n, name in enumerate(objects)
    ]
    return pa.Table.from_pylist(rows, schema=load_contract("changes").arrow_schema())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    register(
        home,
        STREAMS,
        parse("REGISTER QUERY q AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)"),
        owner="ada",
    )
    write_deltalake(
        home.table("changes", "taxis"), changes("a", "b"), partition_by=["event_date"]
    )
    write_deltalake(
        home.table("changes", "sea-ships"), changes("c"), partition_by=["event_date"]
    )
    write_deltalake(
        home.table("layers", "parks"),
        pa.table(
            {
                "fid": ["w1"],
                "tags": pa.array(
                    [[("leaf", "broad")]], pa.map_(pa.string(), pa.string())
                ),
            }
        ),
    )
    write_deltalake(
        home.table("positions", "taxis"),
        pa.table({"object": ["a"], "x": [0.5], "speed": [3.0]}),
    )
    return home


def rows(home: Home, text: str) -> list[tuple]:
    return [tuple(row.values()) for row in sql(home, text).to_pylist()]


@pytest.mark.spec("C7")
def test_changes_of_all_streams_and_of_each(home: Home):
    assert rows(home, "SELECT stream, object FROM changes ORDER BY object") == [
        ("taxis", "a"),
        ("taxis", "b"),
        ("sea-ships", "c"),
    ]
    assert rows(
        home, "SELECT count(*) FROM changes_taxis WHERE sign = 1 AND query = 'q'"
    ) == [(2,)]
    assert rows(home, "SELECT object FROM changes_sea_ships") == [("c",)]


@pytest.mark.spec("C7")
@pytest.mark.spec("C6")
def test_differences_of_all_streams_and_of_each(home: Home):
    assert rows(home, "SELECT stream, query FROM differences") == []
    row = {"event_date": TS.date(), "query": "q", "query_version": 1, "object": "a"}
    row |= {"arm": "told", "why": "late", "run": "r", "from_ts": TS, "to_ts": TS}
    row |= {"cause_in": "enter", "cause_out": "leave"}
    schema = load_contract("differences").arrow_schema()
    write_deltalake(
        home.table("differences", "sea-ships"),
        pa.Table.from_pylist([row, row | {"object": "b"}], schema),
        partition_by=["event_date"],
    )
    counted = "SELECT stream, why, count(*) FROM differences GROUP BY ALL"
    assert rows(home, counted) == [("sea-ships", "late", 2)]
    assert rows(home, "SELECT count(*) FROM differences_sea_ships") == [(2,)]
    assert rows(home, "SELECT count(*) FROM differences_taxis") == [(0,)]
    names = [name for (name,) in rows(home, "SHOW TABLES")]
    assert len(names) == len(set(names))


def test_the_journal_of_the_local_engine_is_part_of_changes(home: Home):
    kept = Journal(home, "taxis", epoch=1)
    kept.append(changes("z", position=9), behind=-1)
    kept.close()
    assert rows(
        home, "SELECT object FROM changes_taxis WHERE position > 0 ORDER BY position"
    ) == [("b",), ("z",)]


@pytest.mark.spec("C7")
def test_layers_positions_and_queries_are_views(home: Home):
    assert rows(home, "SELECT fid, tags['leaf'] FROM layer_parks") == [("w1", "broad")]
    assert rows(home, "SELECT speed FROM positions_taxis") == [(3.0,)]
    assert rows(
        home,
        "SELECT name, version, op, owner, stream, plan->>'$.inside.maxx' FROM queries",
    ) == [("q", 1, "register", "ada", "taxis", "1.0")]


@pytest.mark.spec("C7")
def test_every_contract_has_a_view_before_its_table_is_there(tmp_path: Path):
    empty = Home(tmp_path)
    for name in (
        "changes",
        "queries",
        "regions",
        "rejects",
        "quality",
        "stream_status",
        "dead_letters",
        "feature_faults",
    ):
        assert rows(empty, f"SELECT count(*) FROM {name}") == [(0,)]
        assert set(load_contract(name).arrow_schema().names) <= set(
            sql(empty, f"SELECT * FROM {name}").column_names
        )


@pytest.mark.spec("C7")
def test_plain_deltalake_and_duckdb_read_the_tables_too(home: Home):
    stored = DeltaTable(home.table("changes", "taxis")).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("stored", stored)
        assert connection.sql("SELECT count(*) FROM stored").fetchall() == [(2,)]


@pytest.mark.spec("X12", "C7")
def test_cells_are_functions_here_too(home: Home):
    rows = sql(home, "SELECT h3_cell(24.75, 59.43, 7) AS h, Grid_Cell(-1, 7, 5) AS g")
    assert rows.to_pylist() == [{"h": h3.latlng_to_cell(59.43, 24.75, 7), "g": "-1:1"}]


def test_infinite_numbers_are_found(home: Home):
    """Delta's statistics know no infinity; a condition must not lose such rows."""
    high = float("inf")
    write_deltalake(
        home.table("regions"), pa.table({"region_id": ["0", "1"], "maxx": [1.0, high]})
    )
    assert rows(home, "SELECT region_id FROM regions WHERE maxx > 2") == [("1",)]


def test_times_are_utc(home: Home):
    assert rows(
        home,
        "SELECT event_ts, event_ts::DATE, strftime(event_ts, '%H') FROM changes_taxis LIMIT 1",
    ) == [(TS, TS.date(), "23")]


def test_what_is_listed_can_be_read_and_has_no_inside(home: Home):
    listed = [name for (name,) in rows(home, "show  tables;")]
    assert listed == sorted(listed)
    assert {"changes", "changes_sea_ships", "visits_taxis", "queries"} <= set(listed)
    for name in listed:
        assert " " not in name
        rows(home, f"SELECT * FROM {name}")


def test_tables_can_be_listed(home: Home):
    names = {
        name
        for (name,) in rows(home, "SELECT table_name FROM information_schema.tables")
    }
    assert {
        "changes",
        "changes_taxis",
        "positions_taxis",
        "layer_parks",
        "queries",
        "rejects",
    } <= names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT * FROM change_taxis", "did you mean changes_taxis?"),
        ("SELECT * FROM nowhere_at_all", "views: "),
        ("SELECT nothing FROM changes", '"nothing" not found'),
        ("SELECT leng('a')", "there is no function 'leng' (did you mean len?)"),
        ("SELECT 1; SELECT 2", "expected one SELECT"),
        ("", "expected one SELECT"),
        ("CREATE TABLE x AS SELECT 1", "expected one SELECT"),
        ("DROP VIEW changes_taxis", "expected one SELECT"),
        ("DELETE FROM changes_taxis", "expected one SELECT"),
        ("EXPLAIN DELETE FROM changes_taxis", "expected one SELECT"),
        ("COPY (SELECT 1) TO 'x.csv'", "expected one SELECT"),
        ("ATTACH 'x.db'", "expected one SELECT"),
        ("INSTALL spatial", "expected one SELECT"),
        ("LOAD spatial", "expected one SELECT"),
        ("SET memory_limit = '10GB'", "expected one SELECT"),
        ("PRAGMA database_list", "expected one SELECT"),
        ("CALL duckdb_secrets()", "expected one SELECT"),
        ("SHOW DATABASES", "expected one SELECT"),
        ("SELECT * FROM read_csv('/etc/hostname')", "cannot be used here"),
        ("SELECT * FROM read_text('/etc/hostname')", "cannot be used here"),
        ("SELECT * FROM '/etc/hostname'", "there is no view"),
        ("SELECT * FROM glob('/*')", "cannot be used here"),
        ("SELECT * FROM duckdb_secrets()", "cannot be used here"),
        ("SELECT * FROM duckdb_settings()", "cannot be used here"),
        ("SELECT (SELECT count(*) FROM duckdb_extensions())", "cannot be used here"),
        ("SELECT * FROM query('SELECT 1')", "cannot be used here"),
        ("SELECT * FROM pragma_database_list", "there is no view"),
        ("SELECT * FROM main.duckdb_tables", "there is no view"),
        ("SELECT current_setting('threads')", "cannot be used here"),
        ("SELECT version()", "cannot be used here"),
        ("SELECT write_log('x')", "cannot be used here"),
        ("SELECT 'PATH'.getenv()", "there is no function 'getenv'"),
        ("WITH a AS (SELECT getenv('HOME')) FROM a", "there is no function 'getenv'"),
        (
            "WITH RECURSIVE duckdb_tables AS (FROM duckdb_tables) FROM duckdb_tables",
            "cannot be written here",
        ),
        ("SELECT * FROM STREAMS", "there is no view"),
        ("SELECT 1 / 'x'", "Could not convert"),
        ("SELECT " + "[" * 3000 + "1" + "]" * 3000, "too deep"),
        ("SELECT " + "+".join("1" * 900), "too deep"),
        ("SELECT '" + "x" * 300_000 + "'", "more than 200,000"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_no_reading_of_the_views_is_refused_in_one_line(
    home: Home, text: str, says: str
):
    with pytest.raises(QueryError) as caught:
        sql(home, text)
    told = str(caught.value)
    assert says in told
    assert "\n" not in told
    assert not re.search(r"(Parser|Catalog|Binder|Conversion|Input) Error", told)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FILTER (WHERE sign > 0), max(event_ts) FROM main.changes GROUP BY query",
        "WITH a AS (FROM changes) SELECT object, row_number() OVER (ORDER BY object) FROM a",
        "SELECT [n + 1 for n in [1, 2]], {'a': 1}.a, map {1: 2}, list_sum([1]), [1, 2][1:1]",
        "SELECT now() > current_date, date_trunc('hour', now()), strftime(now(), '%H')",
        "SELECT 'a' LIKE 'b', coalesce(1, 2), nullif(1, 2), 'a' || 'b', 'a'.upper(), x'00'",
        "SELECT 5 BETWEEN 1 AND 6, 1 IN (1, 2), NOT true, try_cast('a' AS INT), 5 // 2, 2 ** 3",
        "SELECT quantile_cont(sign, 0.5), string_agg(object), any_value(query) FROM changes",
        "SELECT exists(FROM changes), (SELECT 1), '[' || '((((', \"object\" FROM changes",
        "SELECT * FROM changes ASOF JOIN queries ON changes.position >= queries.position",
        "SELECT * FROM range(3) UNION ALL SELECT 5 EXCEPT SELECT 1",
        "SELECT unnest(range(3)), h3_cell(1, 2, 3), grid_cell(1, 2, 3)",
        "DESCRIBE changes",
        "SUMMARIZE changes",
        "EXPLAIN ANALYZE SELECT * FROM changes",
        "FROM (PIVOT changes ON query IN ('q') USING count(*) GROUP BY object)",
    ],
)
def test_selects_of_many_kinds_are_carried_out(home: Home, text: str):
    assert sql(home, text).num_columns > 0


def test_of_an_endless_answer_only_what_is_wanted_is_read(home: Home):
    rows = sql(home, "SELECT * FROM range(10000000000)", most=5)
    assert rows.column(0).to_pylist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(QueryError, match="larger than 256 MB"):
        sql(home, "SELECT repeat('x', 100000) FROM range(10000)", most=100_000)


def test_a_stream_that_told_nothing_has_no_visits(tmp_path: Path):
    home = Home(tmp_path)
    table = home.table("changes", "taxis")
    write_deltalake(table, changes(), partition_by=["event_date"])
    assert sql(home, "SELECT * FROM visits").num_rows == 0
