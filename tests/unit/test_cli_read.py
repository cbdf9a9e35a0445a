"""`fairway changes`, `answer`, `sql`: what comes out, byte by byte."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from st_common.cli import app
from st_common.cli.output import write_growing
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.query.registry import register
from st_common.query.text import parse

STREAMS = {
    "taxis": StreamSettings(
        name="taxis", format="csv", columns=Columns(object="id", x="x", y="y")
    )
}
TIMES = [
    datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC),
    datetime(2024, 5, 1, 12, 0, 1, 500_000, tzinfo=UTC),
]
KEYS = ("query", "object", "partner", "sign", "cause", "event_ts", "position", "seq")
ROWS = [
    dict(zip(KEYS, values, strict=True))
    for values in (
        ("q", "a", None, 1, "enter", TIMES[0], 7, 0),
        ("q", "é,1", "w1", 1, "enter", TIMES[0], 7, 1),
        ("q", "a", None, -1, "leave", TIMES[1], 9, 0),
        ("r", "a", None, 0, "inside", TIMES[1], 9, 1),
    )
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = Home(tmp_path)
    text = "REGISTER QUERY q AS SELECT * FROM taxis; REGISTER QUERY r AS SELECT * FROM taxis EMIT EVERY"
    register(home, STREAMS, parse(text), owner="ada")
    rows = [
        row | {"event_date": row["event_ts"].date(), "query_version": 1} for row in ROWS
    ]
    write_deltalake(
        home.table("changes", "taxis"),
        pa.Table.from_pylist(rows, schema=load_contract("changes").arrow_schema()),
    )
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    return lambda *args: CliRunner().invoke(app, list(args), prog_name="fairway")


@pytest.mark.spec("P6")
def test_json_lines_have_exactly_the_promised_keys(run):
    found = run("changes", "--format", "jsonl")
    lines = found.stdout.splitlines()
    assert lines[0] == (
        '{"query": "q", "object": "a", "partner": null, "sign": 1, "cause": "enter", '
        '"event_ts": "2024-05-01T12:00:00Z", "position": 7, "seq": 0, "value": null, "fields": null}'
    )
    assert [list(json.loads(line)) for line in lines] == [
        [*KEYS, "value", "fields"]
    ] * 4
    empty = {"value": None, "fields": None}
    expected = [
        row | empty | {"event_ts": row["event_ts"].isoformat().replace("+00:00", "Z")}
        for row in ROWS
    ]
    assert [json.loads(line) for line in lines] == expected


@pytest.mark.spec("P6")
@pytest.mark.parametrize(
    ("args", "places"),
    [
        ((), [(7, 0), (7, 1), (9, 0), (9, 1)]),
        (("q",), [(7, 0), (7, 1), (9, 0)]),
        (("--since-position", "7"), [(9, 0), (9, 1)]),
        (("q", "--limit", "2"), [(7, 0), (7, 1)]),
        (("--limit", "0"), []),
        (("--since-position", "9"), []),
    ],
)
def test_changes_can_be_narrowed(
    run, args: tuple[str, ...], places: list[tuple[int, int]]
):
    found = run("changes", *args, "--format", "jsonl")
    assert found.exit_code == 0
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["position"], row["seq"]) for row in rows] == places


def test_csv_is_what_programs_read(run):
    rows = list(csv.DictReader(io.StringIO(run("changes", "--format", "csv").stdout)))
    assert [row["object"] for row in rows] == ["a", "é,1", "a", "a"]
    assert rows[0] == {
        "query": "q",
        "object": "a",
        "partner": "",
        "sign": "1",
        "cause": "enter",
        "event_ts": "2024-05-01T12:00:00Z",
        "position": "7",
        "seq": "0",
        "value": "",
        "fields": "",
    }


def test_a_table_is_aligned(run):
    lines = run("changes", "q").stdout.splitlines()
    assert lines[0].split() == [*KEYS, "value", "fields"]
    assert len({line.index("enter") for line in lines[1:3]}) == 1


@pytest.mark.parametrize("form", ["table", "csv"])
@pytest.mark.parametrize(
    "args", [("q",), ("q", "--limit", "1"), ("--tail", "1"), ("q", "--since", "99")]
)
def test_changes_have_the_same_columns_at_each_call(run, form, args):
    first = run("changes", *args, "--format", form).stdout.splitlines()[0]
    assert first.replace(",", " ").split() == [*KEYS, "value", "fields"]


@pytest.mark.spec("P2", "P6")
def test_values_and_fields_of_answers_are_shown_to_people_where_there_are_some(
    run, tmp_path: Path
):
    row = {
        "query": "q",
        "object": "*",
        "sign": 1,
        "cause": "enter",
        "event_ts": TIMES[1],
        "position": 11,
        "seq": 0,
    }
    row |= {"event_date": TIMES[1].date(), "query_version": 1, "value": 2.5}
    schema = load_contract("changes").arrow_schema()
    write_deltalake(
        Home(tmp_path).table("changes", "taxis"),
        pa.Table.from_pylist([row], schema=schema),
        mode="append",
    )
    assert run("answer", "q").stdout.splitlines()[:2] == [
        "object  partner  since_ts                     value",
        "*                2024-05-01T12:00:01.500000Z  2.5",
    ]
    assert (
        json.loads(run("answer", "q", "--format", "jsonl").stdout.splitlines()[0])[
            "value"
        ]
        == 2.5
    )
    found = run("answer", "q", "--explain")
    assert found.stderr == "read of taxis: no snapshot, 4 changes from there on\n"


@pytest.mark.spec("P6")
def test_the_full_answer_now_and_at_a_time(run):
    assert run("answer", "q", "--format", "csv").stdout == (
        'object,partner,since_ts,value,fields\n"é,1",w1,2024-05-01T12:00:00Z,,\n'
    )
    for at in (
        "2024-05-01T12:00:01Z",
        "2024-05-01T12:00:01",
        "2024-05-01T14:00:01+02:00",
    ):
        found = run("answer", "q", "--at", at, "--format", "jsonl")
        assert [json.loads(line)["object"] for line in found.stdout.splitlines()] == [
            "a",
            "é,1",
        ]
    assert run("answer", "q", "--at", "2024-04-01", "--format", "jsonl").stdout == ""


@pytest.mark.spec("C7")
def test_sql_answers_from_the_tables(run):
    found = run(
        "sql",
        "SELECT object, sum(sign) AS n FROM changes WHERE query = 'q' GROUP BY ALL ORDER BY ALL",
        "--format",
        "csv",
    )
    assert found.stdout == 'object,n\na,0\n"é,1",1\n'
    kinds = "SELECT [1, 2] AS list, {'a': 1} AS record, 'ab'::BLOB AS bytes, DATE '2024-05-01' AS day, 1.5 AS number"
    assert json.loads(run("sql", kinds, "--format", "jsonl").stdout) == {
        "list": [1, 2],
        "record": {"a": 1},
        "bytes": "6162",
        "day": "2024-05-01",
        "number": 1.5,
    }
    assert run("sql", kinds).exit_code == 0
    found = run(
        "sql",
        "SELECT 'inf'::DOUBLE AS high, 'nan'::DOUBLE AS none, NULL AS null",
        "--format",
        "jsonl",
    )
    assert found.stdout == '{"high": "inf", "none": "nan", "null": null}\n'


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ("changes", "nobody"),
            "error: unknown query 'nobody' (`fairway query list` names all)",
        ),
        (("answer", "qq"), "error: unknown query 'qq' (did you mean q?)"),
        (
            ("answer", "q", "--at", "yesterday"),
            "error: --at 'yesterday' is no time (such as 2024-05-01T12:30:00Z)",
        ),
        (("sql", "DROP TABLE changes"), "error: expected one SELECT"),
        (("changes", "--format", "xml"), "error: Invalid value for '--format'"),
    ],
)
def test_wrong_use_is_one_line(run, args: tuple[str, ...], says: str):
    found = run(*args)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith(says)
    assert found.stderr.count("\n") == 1


def test_a_part_without_rows_ends_no_table_that_is_written_as_it_comes(capsys):
    """A day of an interval may have no stays, behind one that has some."""
    one = pa.table({"object": ["a"], "value": [1.0]})
    write_growing([one, one.slice(1), one], "table")
    assert capsys.readouterr().out.split() == [
        "object",
        "value",
        "a",
        "1.0",
        "a",
        "1.0",
    ]
