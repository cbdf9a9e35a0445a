"""The batch arm on a real engine: visits of closed days from fixes in order of event time, beside those told."""

import hashlib
import json
import pickle
import shutil
import tempfile
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.answers import answered
from st_common.answers.sql import sql
from st_common.batch.processed import FOLDER
from st_common.batch.reprocess import BatchArm, reprocess
from st_common.batch.sharded import ShardedFold
from st_common.config.home import Home
from st_common.engine.archive import Archive
from st_common.engine.archiver import archiving
from st_common.engine.run import run
from st_common.engine.topology import begin
from st_common.errors import ConfigError
from st_common.history.visits import sorted_visits
from st_common.operations.days import open_since
from st_common.operations.status import StreamStatus, write_status
from st_common.query.registry import drop, register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.grid_days import HOUR_S, T0, histories, segment, settings
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("C6", "X2")

DAYS = [date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 3)]
DAY = timedelta(days=1)
QUERIES = """
REGISTER QUERY places AS SELECT x, y FROM grid INSIDE (0, 5, 10, 10) EMIT EVERY;
REGISTER QUERY values AS SELECT COUNT(*) AS n, AVG(x) AS mean FROM grid INSIDE (0, 0, 10, 5);
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10);
REGISTER QUERY near AS SELECT * FROM grid KNN (2, 5, 5);
REGISTER QUERY pairs AS SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY many AS SELECT COUNT(*) FROM grid INSIDE (0, 0, 10, 5);
REGISTER QUERY lately AS SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 h;
"""
STILL = """
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10);
REGISTER QUERY fence AS SELECT * FROM grid INSIDE (3, 3, 7, 7) DETECT ENTER, EXIT;
"""
LATER = "REGISTER QUERY right AS SELECT * FROM grid INSIDE (6, 0, 10, 10);"


def follow(home, stream, arriving, cuts, *, meanwhile=True, queries=QUERIES):
    """The log written piece by piece, with statements between the pieces, and read by an engine with its archive."""
    streams = {stream.name: stream}
    register(home, streams, parse(queries), owner="t")
    log = bare_log(home.log(stream.name))
    for number, (start, end) in enumerate(zip([0, *cuts], cuts, strict=False)):
        segment(log, arriving[start:end])
        if number == 0 and meanwhile:
            register(home, streams, parse(LATER), owner="t")
        if number == 1 and meanwhile:
            drop(home, "near" if queries is QUERIES else "left")
    run(home, stream, until_idle=True)


def told(home):
    return rows_of(
        sql(home, "SELECT * FROM visits_grid WHERE event_date < '2024-05-04'")
    )


def rows_of(visits):
    rows = visits.drop_columns(["run"]).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def stored(home):
    return rows_of(tables.read(home.table("visits", "grid")))


def again(home, stream, since=0, until=3):
    return reprocess(home, stream, DAYS[0] + since * DAY, DAYS[0] + until * DAY)


@tries(4)
@given(histories())
def test_where_nothing_is_later_than_the_lateness_the_visits_are_those_that_were_told(
    history,
):
    with tempfile.TemporaryDirectory() as folder:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        follow(home, stream, arriving, cuts)
        wanted = told(home)
        done = again(home, stream)
        assert [(day.failed, day.late, day.differs) for day in done.days] == [
            ((), 0, 0)
        ] * 3
        assert stored(home) == wanted == told(home)


@tries(3)
@given(histories(), st.integers(1, 5), st.integers(1, 20))
def test_however_days_are_cut_into_slices_and_read_the_visits_are_the_same(
    history, rows, block
):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        follow(home, stream, arriving, cuts)
        wanted = told(home)
        small.setattr("st_common.batch.ordered.ROWS", rows)
        small.setattr("st_common.batch.ordered.BLOCK", block)
        again(home, stream)
        assert stored(home) == wanted


def taken_away(home):
    """The visits that there are, in their order; they and all borders are gone then."""
    path = home.table("visits", "grid")
    shutil.rmtree(home.stream("grid") / FOLDER)
    if not tables.exists(path):
        return []
    rows = sorted_visits(tables.read(path)).to_pylist()
    shutil.rmtree(path)
    tables.forget(path)
    return rows


def in_turn(tasks, work):
    """Runs tasks one by one, with all that a worker elsewhere gets: what can be pickled."""
    again = lambda value: pickle.loads(pickle.dumps(value))
    return [again(work(*again(task))) for task in tasks]


@tries(3)
@given(histories(), st.integers(1, 5), st.integers(3, 500), st.booleans(), st.data())
def test_however_many_shards_fold_a_day_the_visits_are_the_same(
    history, shards, rows, moving, data
):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        stream = replace(stream, moving=moving)
        queries = data.draw(st.sampled_from((QUERIES, STILL))) if moving else STILL
        arriving = [*data.draw(st.permutations(arriving[:-1])), arriving[-1]]
        follow(home, stream, arriving, cuts, meanwhile=moving, queries=queries)
        small.setattr("st_common.batch.ordered.ROWS", rows)
        small.setattr("st_common.batch.ordered.BLOCK", 3 * rows)
        again(home, stream)
        wanted = taken_away(home)
        fold = ShardedFold(in_turn, shards)
        # The first day by one, the others by shards, from the border of that one.
        again(home, stream, 0, 1)
        reprocess(home, stream, DAYS[1], DAYS[2], fold=fold)
        reprocess(home, stream, DAYS[2], DAYS[2] + DAY, fold=fold)
        assert list((home.stream("grid") / FOLDER).glob(".work*")) == []
        assert taken_away(home) == wanted


@tries(3)
@given(histories(), st.data())
def test_whatever_came_too_late_the_visits_are_those_of_fixes_that_came_in_order(
    history, data
):
    _, arriving, _ = history
    unique = {row[:2]: row for row in arriving}.values()
    in_order = sorted(unique, key=lambda row: (row[1], row[0]))
    disorder = data.draw(st.permutations(in_order))
    stream, of_each = settings(silence_s=history[0].silence_s), []
    for rows in (in_order, disorder):
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder))
            follow(home, stream, rows, [len(rows)], meanwhile=False)
            assert [day.unexplained for day in again(home, stream).days] == [0] * 3
            of_each.append(stored(home))
    assert of_each[0] == of_each[1]


TRIP = [
    ("a", 0, 1, 1, False),
    ("b", HOUR_S, 9, 9, False),
    ("a", 20 * HOUR_S, 9, 9, False),
]
END = [("z", 80 * HOUR_S, 99, 99, False)]
LATE = [("a", 10 * HOUR_S, 9, 9, False), ("a", 30 * HOUR_S, 2, 2, False)]


def inside_left(home):
    asked = "SELECT from_ts, to_ts FROM visits_grid WHERE query = 'left' AND object = 'a' ORDER BY from_ts"
    hours = lambda at: at and (at - T0).total_seconds() / HOUR_S
    return [tuple(map(hours, row.values())) for row in sql(home, asked).to_pylist()]


@pytest.fixture
def late(tmp_path):
    """A stream whose object a told of 10:00 when it had told of 20:00: too late to change an answer."""
    home, stream = Home(tmp_path), settings()
    follow(home, stream, [*TRIP, *END, *LATE], [3, 6])
    return home, stream


def test_old_fixes_after_a_start_open_no_day_again(tmp_path):
    home, stream = Home(tmp_path), settings()
    follow(home, stream, [*TRIP, *END], [3, 4])
    closed_before = open_since(home, "grid")
    segment(bare_log(home.log("grid")), LATE)
    run(home, stream, until_idle=True)
    assert open_since(home, "grid") == closed_before == DAYS[0] + 3 * DAY
    assert [day.late for day in again(home, stream).days] == [1, 1, 0]


def test_no_day_is_closed_before_the_archive_has_come_past_it(tmp_path):
    home, stream = (
        Home(tmp_path),
        begin(Home(tmp_path), settings(), engine="local", shards=1),
    )
    segment(bare_log(home.log("grid")), [*TRIP, *END])
    past_us = round((T0 + 3 * DAY).timestamp() * 1e6) + 1
    status = StreamStatus(
        state="running", beat_ts=1, position=0, end_position=0, now_ts=past_us
    )
    with archiving(Archive(home, stream), every_s=3_600):
        write_status(home.stream("grid"), status)
        assert open_since(home, "grid") is None
    assert open_since(home, "grid") == DAYS[0] + 3 * DAY


def test_a_stream_of_which_nothing_differs_has_differences_without_rows(tmp_path):
    home, stream = Home(tmp_path), settings()
    follow(home, stream, [*TRIP, *END], [3, 4])
    again(home, stream)
    assert sql(home, "SELECT * FROM differences_grid").num_rows == 0


def test_fixes_that_came_too_late_are_in_their_places(late):
    home, stream = late
    rest = [(30, 48), (48, 72), (72, None)]
    assert inside_left(home) == [(0, 20), *rest]
    days = again(home, stream).days
    assert inside_left(home) == [(0, 10), *rest]
    assert [day.fixes for day in days] == [4, 1, 0]


def test_what_differs_from_what_was_told_is_kept_with_the_reason(late):
    home, stream = late
    days = again(home, stream).days
    (kept,) = sql(home, "SELECT count(*) AS n FROM differences_grid").to_pylist()
    assert sum(day.differs for day in days) == kept["n"]
    assert [(day.late, day.unexplained) for day in days] == [(1, 0), (1, 0), (0, 0)]
    asked = """SELECT arm, object, to_ts, why FROM differences_grid
        WHERE query = 'left' AND event_date = '2024-05-01' ORDER BY arm"""
    assert [tuple(row.values()) for row in sql(home, asked).to_pylist()] == [
        ("batch", "a", T0 + timedelta(hours=10), "late"),
        ("told", "a", T0 + timedelta(hours=20), "late"),
    ]


def test_a_day_that_came_to_no_visits_is_read_so(tmp_path):
    home, stream = Home(tmp_path), settings()
    log = bare_log(home.log("grid"))
    segment(log, [("b", HOUR_S, 1, 1, False), ("c", 20 * HOUR_S, 99, 99, False)])
    text = "REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10)"
    register(home, {"grid": stream}, parse(text), owner="t")
    # b had left long before the query was registered, but told so afterwards
    segment(log, [("b", 2 * HOUR_S, 9, 9, False), *END])
    run(home, stream, until_idle=True)
    asked = "SELECT count(*) AS n FROM visits_grid"
    assert sql(home, asked).to_pylist() == [{"n": 1}]
    assert [day.visits for day in again(home, stream).days] == [0] * 3
    assert sql(home, asked).to_pylist() == [{"n": 0}]


def test_doing_a_day_again_writes_nothing_and_reads_that_day_alone(late):
    home, stream = late
    first = again(home, stream)
    version = tables.version(home.table("visits", "grid"))
    second = again(home, stream, 1, 2)
    assert tables.version(home.table("visits", "grid")) == version
    assert (second.began, second.fixes) == (DAYS[1], 1)
    assert [replace(day, replaced=False) for day in first.days[1:2]] == list(
        second.days
    )


def test_days_done_one_by_one_in_any_order_are_those_done_at_once(late, tmp_path):
    home, stream = late
    for day in (2, 0, 1):
        again(home, stream, day, day + 1)
    one_by_one = tables.read(home.table("visits", "grid"))
    shutil.rmtree(home.table("visits", "grid"))
    shutil.rmtree(home.stream("grid") / FOLDER)
    tables.forget(home.table("visits", "grid"))
    again(home, stream)
    at_once = tables.read(home.table("visits", "grid"))
    assert sorted_visits(one_by_one).equals(sorted_visits(at_once))


def test_what_comes_late_after_a_run_is_seen_by_the_next(late):
    home, stream = late
    again(home, stream)
    segment(
        bare_log(home.log("grid")),
        [("a", 5 * HOUR_S, 9, 9, False), ("z", 81 * HOUR_S, 9, 9, False)],
    )
    run(home, stream, until_idle=True)
    done = again(home, stream, 1, 2)
    assert (done.began, done.fixes) == (DAYS[0], 6)
    again(home, stream, 0, 1)
    assert inside_left(home)[0] == (0, 5)


def in_left(home, hour):
    at = T0 + timedelta(hours=hour)
    rows = answered(home, "left", at).rows.to_pylist()
    return [
        (row["object"], (row["since_ts"] - T0) / timedelta(hours=1)) for row in rows
    ]


def test_answers_at_a_time_are_those_of_visits_on_days_that_have_them(late):
    home, stream = late
    asked = (9, 15, 29, 30, 31, 50)
    told = [[("a", 0)], [("a", 0)], [], [("a", 30)], [("a", 30)], [("a", 30)]]
    assert [in_left(home, hour) for hour in asked] == told
    again(home, stream, 0, 1)
    told[1] = []  # a fix of 10:00 took it out, and came too late to be told
    assert [in_left(home, hour) for hour in asked] == told
    again(home, stream, 1, 3)
    assert [in_left(home, hour) for hour in asked] == told


def test_a_stay_that_nobody_told_is_answered_with_the_days_since_which_it_is_known(
    tmp_path,
):
    home, stream = Home(tmp_path), settings()
    # a was in from 1:00 to 40:00, but told so when it had told of 50:00
    came_late = [("a", HOUR_S, 2, 2, False), ("a", 40 * HOUR_S, 9, 9, False)]
    first = [("b", 0, 9, 9, False), ("a", 50 * HOUR_S, 9, 9, False)]
    follow(home, stream, [*first, *END, *came_late], [2, 5])
    assert in_left(home, 30) == []
    again(home, stream, 1, 2)
    assert [in_left(home, hour) for hour in (23, 30, 41)] == [[], [("a", 24)], []]
    again(home, stream, 0, 1)
    assert [in_left(home, hour) for hour in (0, 23, 30)] == [[], [("a", 1)], [("a", 1)]]


@tries(3)
@given(histories())
def test_where_nothing_was_late_answers_at_a_time_are_the_same_before_and_after(
    history,
):
    with tempfile.TemporaryDirectory() as folder:
        home, (stream, arriving, cuts) = Home(Path(folder)), history
        follow(home, stream, arriving, cuts)
        times = [T0 + timedelta(hours=hour) for hour in range(0, 72, 7)]
        names = ("left", "near", "pairs", "many", "lately", "right")
        asked = [(name, at) for name in names for at in times]
        before = [answered(home, *one).rows.to_pylist() for one in asked]
        again(home, stream)
        for one, rows in zip(asked, before, strict=True):
            assert answered(home, *one).rows.to_pylist() == rows, one


def test_changes_and_what_is_delivered_stay_as_they_are(late):
    home, stream = late
    before = tables.version(home.table("changes", "grid"))
    again(home, stream)
    assert tables.version(home.table("changes", "grid")) == before


@pytest.mark.parametrize(
    "name", ["2024-05-02.state", "2024-05-02.arrow", "2024-05-02.json"]
)
def test_a_damaged_border_is_passed_over(late, name):
    home, stream = late
    again(home, stream)
    wanted = tables.read(home.table("visits", "grid"))
    (home.stream("grid") / FOLDER / name).write_bytes(b"torn")
    assert again(home, stream, 1, 2).began == DAYS[0]
    assert sorted_visits(tables.read(home.table("visits", "grid"))).equals(
        sorted_visits(wanted)
    )


def without_fields(home, day, folder):
    """A copy of a home in which visits and a day's border are as they were before they had `fields` and places."""
    later = ["fields", "from_x", "from_y", "to_x", "to_y"]
    rows = tables.read(home.table("visits", "grid")).drop_columns(later)
    home = Home(shutil.copytree(home.root, folder))
    path = home.table("visits", "grid")
    shutil.rmtree(path)
    write_deltalake(str(path), rows, partition_by=["event_date"])
    border = home.stream("grid") / FOLDER / str(day)
    head = json.loads(border.with_suffix(".json").read_bytes())
    del head["crc32"]
    members = pa.ipc.open_stream(border.with_suffix(".arrow").read_bytes()).read_all()
    older = members.drop_columns(["fields"])
    with pa.ipc.new_stream(border.with_suffix(".arrow"), older.schema) as writer:
        writer.write_table(older)
    data = border.with_suffix(".arrow").read_bytes()
    head["sums"][1] = hashlib.sha256(data).hexdigest()
    border.with_suffix(".json").write_text(json.dumps(head))
    return home


def test_what_was_kept_before_visits_had_fields_is_read_and_gains_them(tmp_path):
    home, stream = Home(tmp_path / "new"), settings()
    text = "REGISTER QUERY left AS SELECT x FROM grid INSIDE (0, 0, 5, 10)"
    follow(home, stream, [*TRIP, *END, *LATE], [6], meanwhile=False, queries=text)
    again(home, stream)
    wanted = stored(home)
    shown = tables.read(home.table("visits", "grid"))["fields"].to_pylist()
    assert {json.loads(text)["x"] for text in shown} == {1, 2}
    home = without_fields(home, DAYS[1], tmp_path / "old")
    asked = "SELECT DISTINCT fields FROM visits ORDER BY fields NULLS FIRST"
    assert sql(home, asked)["fields"].to_pylist() == [None]
    assert in_left(home, 5) == [("a", 0)]
    assert again(home, stream, 1, 2).began == DAYS[0]
    assert sql(home, asked)["fields"].to_pylist() == [None, '{"x":2.0}']
    again(home, stream)
    assert stored(home) == wanted


def test_days_that_are_open_and_intervals_without_a_day_are_refused(late):
    home, stream = late
    with pytest.raises(ConfigError, match="2024-05-04 is not closed"):
        again(home, stream, 0, 4)
    with pytest.raises(ConfigError, match="there is no closed day"):
        again(home, stream, 2, 2)
    with pytest.raises(ConfigError, match="never ran"):
        BatchArm.of(Home(home.root / "other"), stream)
