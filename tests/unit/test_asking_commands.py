"""SELECT about the past by commands, in the shell and from Python."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.client import HomeClient
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.errors import QueryError
from tests.kit.ran_home import ran_home

pytestmark = pytest.mark.spec("X10", "P2")

CONF = """
[streams.trucks]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { load = "string" }
crs = "planar"
max_ahead_s = "off"
engine = "local"
"""
FIXES = """id,t,x,y,load
a,2024-05-01T08:00:00Z,1,1,sand
b,2024-05-01T09:00:00Z,9,9,sand
a,2024-05-01T12:00:00Z,9,9,sand
b,2024-05-02T13:00:00Z,2,2,coal
z,2024-05-02T18:00:00Z,50,50,
"""
NEAR = "SELECT * FROM trucks INSIDE (0, 0, 5, 5)"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return ran_home(tmp_path_factory.mktemp("past"), CONF, "trucks", FIXES)


@pytest.fixture
def client(home):
    return HomeClient(home, streams=load_streams(home.root / "conf"))


def fairway(home, *words, text=None):
    return CliRunner().invoke(app, ["--home", str(home.root), *words], input=text)


def test_an_answer_is_a_table_for_people_and_lines_for_programs(home):
    asked = ("query", "run", "--text", f"{NEAR} AS OF '2024-05-01T11:00:00Z'")
    done = fairway(home, *asked)
    assert done.exit_code == 0, done.output
    head, row = done.stdout.splitlines()
    assert (head.split(), row.split()) == (
        ["object", "partner", "since_ts"],
        ["a", "2024-05-01T08:00:00Z"],
    )
    (line,) = fairway(home, *asked, "--format", "jsonl").stdout.splitlines()
    assert json.loads(line)["object"] == "a"


def test_an_interval_over_days_is_one_table(home):
    text = f"{NEAR} BETWEEN '2024-05-01T09:00:00Z' AND '2024-05-02T14:00:00Z'"
    done = fairway(home, "query", "run", "-", "--format", "csv", text=text)
    assert done.exit_code == 0, done.output
    assert [
        (row["object"], row["from_ts"], row["to_ts"], row["cause_in"])
        for row in csv.DictReader(io.StringIO(done.stdout))
    ] == [
        ("a", "2024-05-01T09:00:00Z", "2024-05-01T12:00:00Z", "day"),
        ("b", "2024-05-02T13:00:00Z", "", "enter"),
    ]


def test_stays_show_selected_columns_and_people_see_none_where_none_are_selected(home):
    times = "BETWEEN '2024-05-01T09:00:00Z' AND '2024-05-02T14:00:00Z'"
    run = lambda text, form: fairway(home, "query", "run", "--text", text, *form)
    shows = "SELECT load, COUNT(*) AS n FROM trucks INSIDE (0, 0, 5, 5) GROUP BY load"
    done = run(f"{shows} {times}", ["--format", "jsonl"])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [json.loads(row["fields"]) for row in rows] == [
        {"load": "sand", "n": 1},
        {"load": "coal", "n": 1},
    ]
    head, row, _ = run(f"{shows} {times}", []).stdout.splitlines()
    assert head.split()[-1] == "fields"
    assert row.endswith('{"load":"sand","n":1}')
    assert "fields" not in run(f"{NEAR} {times}", []).stdout


def test_the_shell_shows_the_columns_of_stays(home):
    text = NEAR.replace("*", "load")
    asked = f"SHOW STREAMS; {text} BETWEEN '2024-05-02' AND '2024-05-02T15:00:00Z'"
    done = fairway(home, "query", "register", "--text", asked)
    assert done.stdout.splitlines()[-1].split()[-2:] == ["enter", '{"load":"coal"}']


def test_an_interval_over_days_is_one_parquet_file(home):
    text = f"{NEAR} BETWEEN '2024-05-01T09:00:00Z' AND '2024-05-02T14:00:00Z'"
    done = fairway(home, "query", "run", "--text", text, "--format", "parquet")
    rows = pq.read_table(io.BytesIO(done.stdout_bytes))
    assert rows["object"].to_pylist() == ["a", "b"]
    assert rows["to_ts"].null_count == 1


def test_statements_that_do_something_and_more_than_one_question_are_refused(home):
    for text in ("SHOW QUERIES", f"{NEAR}; {NEAR}", f"REGISTER QUERY q AS {NEAR}"):
        done = fairway(home, "query", "run", "--text", text)
        assert done.exit_code == 2
        assert "one SELECT is answered at a time" in done.output
    assert "q" not in fairway(home, "query", "list").stdout.split()


def test_the_shell_answers_between_other_statements(home):
    text = f"SHOW STREAMS; {NEAR}"
    done = fairway(home, "query", "register", "--text", text)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].split() == ["b", "2024-05-02T13:00:00Z"]


def test_behind_a_condition_two_times_are_the_interval_and_texts_are_compared(client):
    times = "BETWEEN '2024-05-02' AND '2024-05-02T15:00:00Z'"
    stays = client.ask(f"SELECT * FROM trucks WHERE load = 'sand' {times}")
    assert set(stays["object"].to_pylist()) == {"a", "b"}
    shows = client.ask(f"SELECT load FROM trucks WHERE load = 'sand' {times}")
    assert set(shows["fields"].to_pylist()) == {'{"load":"sand"}'}
    compared = "WHERE load BETWEEN 'a' AND 'd' AS OF '2024-05-02T15:00:00Z'"
    then = client.ask(f"SELECT * FROM trucks {compared}")
    assert then["object"].to_pylist() == ["b"]
    assert then["since_ts"].to_pylist() == [datetime(2024, 5, 2, 13, tzinfo=UTC)]


def test_python_is_told_what_is_wrong(client):
    with pytest.raises(QueryError, match="expected one SELECT"):
        client.ask("SHOW QUERIES")
    with pytest.raises(QueryError, match="unknown stream 'truck'"):
        client.ask("SELECT * FROM truck AS OF '2024-05-01'")
    with pytest.raises(QueryError, match="has not come to 2025-01-01T00:00:00Z"):
        client.ask(f"{NEAR} AS OF '2025-01-01'")


def test_a_query_with_what_came_before_is_registered_explained_and_not_verified(home):
    text = "REGISTER QUERY sand AS SELECT * FROM trucks WHERE load = 'sand' FOR 1 h FROM BEGINNING"
    done = fairway(home, "query", "register", "--text", text)
    assert (done.exit_code, done.stdout) == (0, "registered sand (version 1)\n")
    run(home, load_streams(home.root / "conf")["trucks"], until_idle=True)
    told = fairway(home, "changes", "sand", "--format", "jsonl").stdout.splitlines()
    (change,) = [json.loads(line) for line in told]
    assert (change["object"], change["cause"]) == ("a", "backfilled")
    why = fairway(home, "why", "sand", "a", "--at", change["event_ts"])
    assert why.exit_code == 0, why.output
    assert "registered with what came before it" in " ".join(why.stdout.split())
    verified = fairway(home, "verify")
    assert verified.exit_code == 0, verified.output
    said = r"sand: at position \d+: not checked, it began with what came before it"
    assert re.match(said, verified.output)
