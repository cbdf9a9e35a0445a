"""Every change says where its object was, whatever the sign and the cause; homes of before go on (SPEC X7)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.answers.follow import follow
from st_common.answers.last_changes import last_changes
from st_common.answers.places import with_group_places
from st_common.answers.sql import sql
from st_common.checks.audit import audit
from st_common.cli import app
from st_common.client.changes import change_of
from st_common.client.http_events import row_of
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import load_contract, matches
from st_common.delivery.message import messages
from st_common.engine.journal import Journal
from st_common.engine.run import run
from st_common.operators.outer.lingering import Lingering
from st_common.operators.outer.settling import Waiting
from st_common.operators.runtime.seeds import MEMBERS, Seed
from st_common.operators.state.codec import from_blob, to_blob
from st_common.operators.state.state import State
from st_common.operators.travelled.rows import FrameRows
from st_common.query.registry import register as register_queries
from st_common.query.text import parse
from tests.kit.by_hand import clock, drop, end, fix, gone, log, register
from tests.kit.log_writer import bare_log
from tests.kit.oracle import Rules
from tests.kit.rows_told import plan_of
from tests.kit.telling import by_both

pytestmark = pytest.mark.spec("X7")

CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
QUERIES = """
REGISTER QUERY box AS SELECT * FROM s INSIDE (0, 0, 5, 5);
REGISTER QUERY many AS SELECT COUNT(*) FROM s INSIDE (0, 0, 5, 5)
"""
NEW = ("x", "y")


def places(text, *rows, **rules):
    """Second, sign, object, cause and place of what is told, after brute force and the step told the same."""
    told = by_both(
        log(register("q", plan_of(text)), *rows),
        rules=Rules(**rules) if rules else None,
    )
    return [
        f"{one.event_us / 1e6:g} {'-=+'[one.sign + 1]}{one.object} {one.cause} {one.x},{one.y}"
        for one in told
    ]


def test_who_leaves_for_whatever_reason_is_where_it_was_last():
    told = places(
        "SELECT * FROM s INSIDE (0, 0, 5, 5)",
        fix("a", 1, 1, 1),
        fix("b", 2, 2, 2),
        fix("c", 3, 3, 3),
        fix("d", 4, 4, 4),
        fix("a", 5, 9, 9),
        gone("b", 6),
        fix("d", 11, 4, 5),
        clock(15),
        drop("q"),
        silence_us=10_000_000,
    )
    assert told == [
        "1 +a enter 1,1",
        "2 +b enter 2,2",
        "3 +c enter 3,3",
        "4 +d enter 4,4",
        "5 -a leave 9,9",
        "6 -b gone 2,2",
        "13 -c expired 3,3",
        "15 -d dropped 4,5",
    ]


def test_an_object_that_another_one_left_behind_is_where_it_is():
    told = places(
        "SELECT * FROM s INSIDE ('M', 'car', 4 m)",
        fix("car", 1, 0, 0),
        fix("a", 1, 1, 1),
        fix("car", 3, 50, 50),
        end(),
    )
    assert [line for line in told if "a " in line] == [
        "1 +a enter 1,1",
        "3 -a leave 1,1",
    ]


def test_a_row_of_a_window_is_where_its_fix_was_also_when_it_is_too_old():
    told = places(
        "SELECT x FROM s [ROWS 2]",
        *(fix("a", second, second, 0) for second in (1, 2, 3)),
        end(),
    )
    assert told == [
        "1 +a enter 1,0",
        "2 +a enter 2,0",
        "3 -a aged 1,0",
        "3 +a enter 3,0",
    ]


def test_what_is_told_again_above_rows_is_where_its_object_is_by_then():
    told = places(
        "SELECT RSTREAM(*) FROM (SELECT * FROM s INSIDE (0, 0, 9, 9)) r",
        fix("a", 1, 1, 1),
        fix("a", 3, 2, 2),
        fix("b", 5, 5, 5),
        end(),
    )
    assert told == ["1 +a enter 1,1", "5 =a inside 2,2", "5 +b enter 5,5"]


def test_groups_are_nowhere_though_an_object_has_the_name_of_one():
    told = places(
        "SELECT RSTREAM(*) FROM (SELECT COUNT(*) FROM s GROUP BY kind) r",
        fix("bus", 1, 1, 1, kind="bus"),
        fix("tram", 3, 2, 2, kind="tram"),
        end(),
    )
    assert told == [
        "1 +bus enter None,None",
        "3 =bus inside None,None",
        "3 +tram enter None,None",
    ]


def test_groups_are_shown_where_their_values_are():
    fields = ['{"x":1.5,"y":2}', '{"n":3}', '{"x":null,"y":2}', '{"x":7,"y":7}', None]
    rows = pa.table({"x": [None, None, None, 3.0, None], "fields": fields})
    shown = with_group_places(rows.append_column("y", rows["x"]))
    assert shown["x"].to_pylist() == [1.5, None, None, 3.0, None]
    assert shown["y"].to_pylist() == [2.0, None, None, 3.0, None]


@pytest.mark.parametrize("kind", [FrameRows, Waiting, Lingering])
def test_states_of_before_are_read_and_know_no_places(kind):
    columns = {name: getattr(kind(), name) for name in kind.columns()}
    arrays = {
        f"{kind.LAYOUT.name}/{name}": np.zeros(2, column.dtype)
        if isinstance(column, np.ndarray)
        else pa.nulls(2, column.type)
        for name, column in columns.items()
        if name not in NEW
    }
    read = kind.from_arrays(arrays)
    assert len(read) == 2
    assert np.isnan(read.x).all()
    assert np.isnan(read.y).all()


def test_a_seed_of_before_is_read_and_knows_no_places():
    member = {"object": "a", "since_ts": 0}
    members = pa.Table.from_pylist([member], schema=MEMBERS)
    arrays, meta = from_blob(Seed(state=State(), members=members).to_bytes())
    state = np.asarray(arrays["both"])[: meta["state_bytes"]]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, members.drop_columns(NEW).schema) as writer:
        writer.write_table(members.drop_columns(NEW))
    old = np.frombuffer(state.tobytes() + sink.getvalue().to_pybytes(), np.uint8)
    assert Seed.from_bytes(to_blob({"both": old}, meta)).members.equals(members)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    home = Home(tmp_path)
    register_queries(home, streams(home), parse(QUERIES), owner="ada")
    return home


def streams(home):
    return load_streams(home.root / "conf")


def work(home, *lines):
    payload = "\n".join(("id,t,x,y", *lines, "")).encode()
    bare_log(home.log("s")).append(payload, arrival_us=0)
    run(home, streams(home)["s"], until_idle=True)


def shown(rows):
    """Sign, object and place of those that are not of groups."""
    return [
        (row["sign"], row["object"], row["x"], row["y"])
        for row in rows.to_pylist()
        if row["query"] == "box"
    ]


def put_back(begun, folder):
    """A home of before: the table as versions before places made it, and a journal of such a one."""
    shutil.copytree(begun.root, folder)
    home = Home(folder)
    path, contract = home.table("changes", "s"), load_contract("changes")
    rows, committed = tables.read(path), tables.committed(path, "engine")
    shutil.rmtree(path)
    old = pa.schema(
        [field for field in contract.arrow_schema() if field.name not in NEW]
    )
    DeltaTable.create(
        str(path),
        Schema.from_arrow(old),
        name=contract.name,
        partition_by=list(contract.partition_by),
        configuration=dict(contract.properties),
    )
    done = CommitProperties(app_transactions=[Transaction("engine", committed)])
    write_deltalake(
        str(path), rows.select(old.names), mode="append", commit_properties=done
    )
    journal = Journal(home, "s", epoch=99)
    behind = rows.slice(0, 1).select(old.names)
    at = behind.schema.get_field_index("position")
    journal.append(
        behind.set_column(at, "position", pa.array([committed + 1])), behind=-1
    )
    journal.close()
    return home


def test_a_home_of_before_is_read_and_goes_on(home, tmp_path_factory):
    work(home, "a,1,1,1", "b,2,2,2", "a,3,9,9")
    home = put_back(home, tmp_path_factory.mktemp("before") / "home")
    nothing = [(1, "a"), (1, "b"), (-1, "a")]
    ways = (
        stream_changes(home, "s"),
        last_changes(home, stream="s", count=99),
        pa.concat_tables(follow(home, "s", seconds=0.0)),
        sql(home, "SELECT * FROM changes_s ORDER BY position, seq"),
    )
    for rows in ways:
        known = shown(rows)[:3]
        assert known == [(*one, None, None) for one in nothing]
    (home.stream("s") / "local" / "journal-00000099.bin").unlink()

    work(home, "b,4,8,8")
    path, contract = home.table("changes", "s"), load_contract("changes")
    assert matches(contract, path) == []
    assert shown(stream_changes(home, "s"))[3:] == [(-1, "b", 8.0, 8.0)]
    stored = tables.read(path, filters=[("query", "=", "box")])
    assert stored["x"].null_count == 3
    found = {one.what: one.problem for one in audit(home, streams(home)["s"])}
    assert set(found.values()) == {None}, found


def test_visits_have_the_places_of_both_ends(home):
    work(home, "a,1,1,1", "a,5,9,9", "b,7,2,2", "b,86405,3,3", "a,86406,4,4")
    rows = sql(home, "SELECT * FROM visits_s WHERE query = 'box' ORDER BY from_ts")
    ends = ("object", "from_x", "from_y", "to_x", "to_y", "cause_in", "cause_out")
    assert [tuple(row[name] for name in ends) for row in rows.to_pylist()] == [
        ("a", 1.0, 1.0, 9.0, 9.0, "enter", "leave"),
        ("b", 2.0, 2.0, None, None, "enter", "day"),
        ("b", None, None, None, None, "day", None),
        ("a", 4.0, 4.0, None, None, "enter", None),
    ]


def test_deliveries_events_and_programs_say_the_place(home):
    work(home, "a,1,1.5,2.5")
    rows = stream_changes(home, "s", "box")
    event = json.loads(messages(rows, "s").lines[0])
    assert (event["x"], event["y"]) == (1.5, 2.5)
    for row in (rows.to_pylist()[0], row_of(event)):
        change = change_of(row)
        assert (change.object, change.x, change.y) == ("a", 1.5, 2.5)
    of_before = {name: value for name, value in event.items() if name not in NEW}
    assert change_of(row_of(of_before)).x is None


def test_places_are_shown_of_changes_that_come(home):
    work(home, "a,1,1,1", "a,2,9,9")
    words = ["changes", "box", "--follow", "--until-idle", "--places", "--json"]
    found = CliRunner().invoke(app, words, prog_name="fairway")
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [(row["sign"], row["x"], row["y"]) for row in rows] == [
        (1, 1.0, 1.0),
        (-1, 9.0, 9.0),
    ]
