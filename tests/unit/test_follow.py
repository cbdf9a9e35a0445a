"""Following changes: each once, in order, whatever engines, commits, compaction and crashes do meanwhile."""

import json
import shutil

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.changes import stream_changes
from st_common.answers.follow import Follower, follow
from st_common.answers.last_changes import last_changes
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.journal import Journal, JournalTail
from st_common.engine.local import LocalEngine
from st_common.query.plan import Box, Plan
from st_common.tables.tail import Tail
from tests.kit.log_writer import bare_log

STREAM = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
CONTRACT = load_contract("changes")


def prepare(folder, queries=("q", "r")):
    home = Home(folder)
    log = bare_log(home.log("s"))
    for number, query in enumerate(queries):
        plan = Plan(
            stream="s", inside=Box(minx=number, miny=0, maxx=5, maxy=5)
        ).to_json()
        row = {
            "op": "register",
            "query": query,
            "version": 1,
            "plan": plan,
            "text": "",
            "owner": "t",
        }
        log.append(json.dumps(row).encode(), arrival_us=0, control=True)
    return home, log


def places(rows: pa.Table) -> list[tuple[int, int]]:
    return list(zip(rows["position"].to_pylist(), rows["seq"].to_pylist(), strict=True))


def rows_of(*positions_and_seqs, day=1):
    return pa.Table.from_pylist(
        [
            {
                "position": position,
                "seq": seq,
                "event_ts": day * 86_400_000_000 + position,
                "query": "q",
                "query_version": 1,
                "sign": 1,
                "object": f"o{position}-{seq}",
                "cause": "enter",
            }
            for position, seq in positions_and_seqs
        ]
    )


def commit(home, rows, end):
    return tables.append(
        home.table("changes", "s"), rows, CONTRACT, app="engine", version=end
    )


# what the engine does next: takes what is there, commits, compacts, dies and starts again; or the follower looks
ACTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("fixes"),
            st.lists(
                st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=4
            ),
        ),
        st.sampled_from(
            [
                ("batch",),
                ("commit",),
                ("store",),
                ("crash",),
                ("compact",),
                ("look",),
                ("look",),
            ]
        ),
    ),
    max_size=25,
)


@pytest.mark.spec("X7", "X6")
@given(ACTIONS)
def test_every_change_is_told_once_and_in_order(tmp_path_factory, actions):
    folder = tmp_path_factory.mktemp("follow")
    home, log = prepare(folder)
    engine, follower, told, second = (
        LocalEngine(home, STREAM),
        Follower(home, "s"),
        [],
        0,
    )
    for action, *arguments in actions:
        match action:
            case "fixes":
                lines = "".join(
                    f"o{object_},{second + n},{x},1\n"
                    for n, (object_, x) in enumerate(*arguments)
                )
                second += len(*arguments)
                log.append(b"id,t,x,y\n" + lines.encode(), arrival_us=0)
            case "batch":
                engine.batch()
            case "commit":
                engine.commit()
            case "store":
                engine.store()
            case "crash":
                engine.abandon()
                engine = LocalEngine(home, STREAM)
            case "compact" if tables.exists(home.table("changes", "s")):
                tables.compact(home.table("changes", "s"), before=None)
            case "look":
                told.append(follower.poll())
    while engine.batch():
        pass
    told.append(follower.poll())  # from the journal
    engine.close()
    told.append(follower.poll())  # from the table
    expected = stream_changes(home, "s")
    assert pa.concat_tables(told).equals(expected)
    assert Follower(home, "s").poll().equals(expected)
    shutil.rmtree(folder)


@pytest.mark.spec("X7")
def test_a_place_inside_a_position_is_where_it_goes_on(tmp_path):
    home = Home(tmp_path)
    commit(home, rows_of((4, 0), (4, 1), (4, 2), (9, 0)), 10)
    commit(home, rows_of((12, 0)), 20)
    assert places(Follower(home, "s", after=(4, 1)).poll()) == [(4, 2), (9, 0), (12, 0)]
    assert places(Follower(home, "s", after=(4, 2)).poll()) == [(9, 0), (12, 0)]
    assert places(pa.concat_tables(follow(home, "s", since=4, seconds=0))) == [
        (9, 0),
        (12, 0),
    ]


def test_a_large_table_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("st_common.answers.follow._ROWS", 3)
    home = Home(tmp_path)
    for number in range(6):
        commit(
            home,
            pa.concat_tables(
                [rows_of((number * 2, 0)), rows_of((number * 2 + 1, 0), day=2)]
            ),
            number * 2 + 1,
        )
    follower, parts = Follower(home, "s"), []
    while len(part := follower.poll()):
        parts.append(part)
    assert len(parts) > 2
    assert [place for part in parts for place in places(part)] == [
        (n, 0) for n in range(12)
    ]
    commit(home, rows_of((40, 0)), 40)
    assert places(follower.poll()) == [(40, 0)]


def test_a_look_that_finds_nothing_opens_no_data_file(tmp_path, monkeypatch):
    home = Home(tmp_path)
    commit(home, rows_of((1, 0)), 1)
    follower = Follower(home, "s")
    assert len(follower.poll()) == 1
    monkeypatch.setattr(Tail, "read", lambda *_: pytest.fail("read again"))
    monkeypatch.setattr(Tail, "_whole", lambda *_: pytest.fail("listed again"))
    assert len(follower.poll()) == 0
    tables.append(
        home.table("changes", "s"),
        rows_of((1, 0)).slice(0, 0),
        CONTRACT,
        app="engine",
        version=5,
    )
    assert len(follower.poll()) == 0


@pytest.mark.spec("X7", "C5")
def test_a_log_that_was_cleaned_and_files_that_have_gone_lose_nothing(tmp_path):
    home, path = Home(tmp_path), Home(tmp_path).table("changes", "s")
    commit(home, rows_of((1, 0)), 1)
    follower = Follower(home, "s")
    follower.poll()
    for position in range(2, 60):  # checkpoints at every 20th commit
        commit(home, rows_of((position, 0)), position)
    for number in range(1, 45):
        (path / "_delta_log" / f"{number:020d}.json").unlink(missing_ok=True)
    assert places(follower.poll()) == [(n, 0) for n in range(2, 60)]
    for position in range(60, 64):
        commit(home, rows_of((position, 0)), position)
    listed = follower._table.added(59)
    follower._files = listed
    tables.compact(path, before=None)
    tables.vacuum(path, retention_h=0)
    assert not any((path / file.path).exists() for file in listed)
    assert places(follower.poll()) == [(n, 0) for n in range(60, 64)]


def test_a_journal_is_read_on_after_it_was_emptied(tmp_path):
    home = Home(tmp_path)
    tail = JournalTail(home, "s")
    assert tail.read() == []
    journal = Journal(home, "s", epoch=1)
    seen = []
    for number in range(12):
        journal.append(pa.table({"n": [number]}), behind=-1)
        if number % 3 == 0:
            seen += tail.read()
            assert tail.read() == []
        if number % 6 == 3:
            journal.clear()
            journal.append(pa.table({"n": [100 + number]}), behind=-1)
    seen += tail.read()
    journal.close()
    assert [value for batch in seen for value in batch.rows["n"].to_pylist()] == [
        0,
        1,
        2,
        3,
        103,
        4,
        5,
        6,
        7,
        8,
        9,
        109,
        10,
        11,
    ]


def test_following_ends_when_the_engine_has_done_what_the_log_holds(tmp_path):
    from st_common.engine.run import run

    home, log = prepare(tmp_path)
    log.append(b"id,t,x,y\na,1,1,1\nb,1,9,9\n", arrival_us=0)
    run(home, STREAM, until_idle=True)
    found = pa.concat_tables(follow(home, until_idle=True))
    assert found.equals(stream_changes(home, "s"))
    assert len(found) == 2
    log.append(b"id,t,x,y\na,2,9,9\n", arrival_us=0)
    told = list(
        follow(home, "s", "q", seconds=0.1, until_idle=True)
    )  # the engine has not done that yet
    assert sum(map(len, told)) == 1


@pytest.mark.spec("X6", "P6")
def test_what_a_journal_holds_behind_changes_that_were_lost_waits_for_them(tmp_path):
    home, log = prepare(tmp_path / "home")
    table, older = home.table("changes", "s"), tmp_path / "older"
    engine = LocalEngine(home, STREAM)

    def tells(second: int) -> None:
        log.append(f"id,t,x,y\no{second},{second},1,1\n".encode(), arrival_us=0)
        while engine.batch():
            pass

    tells(1)
    engine.commit()
    shutil.copytree(table, older)
    tells(2)
    engine.commit()
    tells(3)
    tells(4)
    every = places(stream_changes(home, "s"))
    engine.abandon()
    shutil.rmtree(table)
    shutil.copytree(older, table)  # a power cut took its last version
    kept = every[: len(every) // 4]
    follower, newcomer = Follower(home, "s"), Follower(home, "s")
    assert places(follower.poll()) == kept
    assert newcomer.skip()[0] == kept[-1][0]
    assert places(stream_changes(home, "s")) == kept
    assert places(last_changes(home, stream="s", count=100)) == kept
    engine = LocalEngine(home, STREAM)
    while engine.batch():
        pass
    assert places(stream_changes(home, "s")) == every
    assert places(last_changes(home, stream="s", count=100)) == every
    engine.close()
    assert places(follower.poll()) == every[len(kept) :]
    assert places(newcomer.poll()) == every[len(kept) :]
    assert places(stream_changes(home, "s")) == every
