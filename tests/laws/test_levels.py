"""The levels of storage on a real engine: snapshots and `latest` say what all history says, whenever they were made."""

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.answers import answered
from st_common.answers.history import objects_at
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.archive import Archive
from st_common.errors import FairwayError
from st_common.history import stored, taking
from st_common.history.fold import fold
from st_common.history.latest import Focals, flush_latest
from st_common.history.snapshots import newest_snapshot, snapshots
from st_common.history.taking import take_due, take_snapshot
from st_common.position import position_of
from st_common.quality.expectations import ArrowRows
from st_common.query.registry import drop, register
from st_common.query.text import parse
from tests.kit.archived import run_through
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("P2")

T0 = datetime(2024, 5, 1, 12, tzinfo=UTC)
STREAM = StreamSettings(
    name="grid",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    snapshot_s=10.0,
    columns=Columns(object="id", event_ts="t", x="x", y="y", gone="gone"),
)
QUERIES = """
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10);
REGISTER QUERY every AS SELECT * FROM grid INSIDE (3, 3, 7, 7) EMIT EVERY;
"""


@st.composite
def histories(draw):
    """Fixes (id, seconds after T0, x, y, gone) in the order of the log, in segments; settings; when what is written."""
    start, fixes = 0, []
    for _ in range(draw(st.integers(1, 40))):
        start += draw(st.sampled_from([0, 0, 1, 1, 3, 7, 25]))
        late = draw(st.sampled_from([0, 0, 0, 0, 2, 12]))
        place = draw(st.tuples(st.integers(0, 10), st.integers(0, 10)))
        fixes.append(
            (
                draw(st.sampled_from("abcd")),
                max(start - late, 0),
                *place,
                draw(st.integers(0, 9)) == 0,
            )
        )
    cuts = sorted(draw(st.sets(st.integers(1, len(fixes)), max_size=4)) | {len(fixes)})
    lateness, silence = (
        draw(st.sampled_from([0.0, 0.0, 4.0])),
        draw(st.sampled_from([None, 15.0])),
    )
    return (
        fixes,
        cuts,
        lateness,
        silence,
        draw(st.lists(st.booleans(), min_size=len(cuts), max_size=len(cuts))),
    )


def segment(log, fixes):
    epoch = round(T0.timestamp())
    lines = [
        f"{i},{epoch + t},{x},{y},{'true' if gone else ''}"
        for i, t, x, y, gone in fixes
    ]
    log.append("\n".join(["id,t,x,y,gone", *lines]).encode(), arrival_us=0)


def follow(home, stream):
    """The engine and the archive up to the log's end, as a process that ends in order."""
    run_through(home, stream)


def run(home, stream, history, *, levels=True):
    """The log written and read bit by bit; the levels are written at some of its ends only, in new processes."""
    fixes, cuts, _, _, writes = history
    register(home, {stream.name: stream}, parse(QUERIES), owner="t")
    log = bare_log(home.log(stream.name))
    for start, end, write in zip([0, *cuts], cuts, writes, strict=False):
        segment(log, fixes[start:end])
        if write:
            follow(home, stream)
            flush_latest(home, stream)
            take_due(home, stream)
    follow(home, stream)
    if levels:
        flush_latest(home, stream)
        take_due(home, stream)


def settings_of(history):
    _, _, lateness, silence, _ = history
    changed = {"lateness_s": lateness, "silence_s": silence}
    return StreamSettings(
        **{name: getattr(STREAM, name) for name in STREAM.__slots__} | changed
    )


def fold_all(home, query, at):
    """Every change up to a time, one by one: who is in, and since when."""
    rows = tables.read(home.table("changes", "grid")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    members = {}
    for row in rows.to_pylist():
        if row["query"] == query and row["sign"] and row["event_ts"] <= at:
            members.pop((row["object"], row["partner"]), None)
            if row["sign"] > 0:
                members[row["object"], row["partner"]] = row["event_ts"]
    return {(name, partner, since) for (name, partner), since in members.items()}


def where_all(home, at, silence):
    """Every fix up to a time, one by one: where each object was that was neither gone nor silent."""
    last = {}
    rows = tables.read(home.table("positions", "grid")).sort_by(
        [("segment", "ascending"), ("row", "ascending")]
    )
    for row in rows.to_pylist():
        known = last.get(row["object"])
        if row["event_ts"] <= at and (
            known is None or row["event_ts"] > known["event_ts"]
        ):
            last[row["object"]] = row
    return {
        (name, row["event_ts"], row["x"], row["y"])
        for name, row in last.items()
        if not row["gone"]
        and (silence is None or row["event_ts"] + timedelta(seconds=silence) >= at)
    }


def values(rows, *names):
    return {tuple(row[name] for name in names) for row in rows.to_pylist()}


@tries(8)
@given(histories(), st.data())
def test_questions_about_any_time_are_answered_as_from_all_changes_and_fixes(
    history, data
):
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of(history)
        run(home, stream, history)
        last = max(t for _, t, *_ in history[0])
        near = sorted(
            {
                *(t + d for _, t, *_ in history[0] for d in (-1, 0, 1)),
                *range(0, last, 10),
            }
        )
        times = sorted(
            {
                0,
                last,
                last + 30,
                *data.draw(st.sets(st.sampled_from(near), max_size=10)),
            }
        )
        for at in (T0 + timedelta(seconds=t) for t in times):
            for query in ("left", "every"):
                found = answered(home, query, at)
                assert values(found.rows, "object", "partner", "since_ts") == fold_all(
                    home, query, at
                )
            seen = objects_at(home, stream, at)
            assert values(seen.rows, "object", "event_ts", "x", "y") == where_all(
                home, at, history[3]
            )


def without_doubts(rows):
    """The rows of a table as text, sorted: NaN equals NaN there."""
    return sorted(str(row) for row in rows.to_pylist())


@tries(6)
@given(histories())
def test_the_levels_depend_on_the_log_alone_and_not_on_who_wrote_them_when(history):
    found = []
    for writes in (history[4], [False] * len(history[1]), [True] * len(history[1])):
        with tempfile.TemporaryDirectory() as folder:
            home, stream = Home(Path(folder)), settings_of(history)
            run(home, stream, (*history[:4], writes))
            kept = [home.table(name, "grid") for name in ("latest", "snapshots")]
            found.append(
                [
                    without_doubts(tables.read(path)) if tables.exists(path) else []
                    for path in kept
                ]
            )
    assert found[0] == found[1] == found[2]


@tries(8)
@given(histories())
def test_a_snapshot_stands_where_the_clock_passes_a_multiple(history):
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of(history)
        run(home, stream, history)
        fixes, cuts, lateness = history[0], history[1], history[2]
        first, clock, expected = 1, None, []  # segment 0 holds the registrations
        for number, (_, t, *_) in enumerate(fixes):
            while number >= cuts[first - 1]:
                first += 1
            now = t - lateness if clock is None else max(clock, t - lateness)
            if clock is not None and -(-now // 10) > -(-clock // 10):
                row = number - ([0, *cuts][first - 1])
                expected.append(
                    (
                        position_of(first, row),
                        T0 + timedelta(seconds=-(-clock // 10) * 10),
                    )
                )
            clock = now
        assert [
            (each.position, each.snapshot_ts) for each in snapshots(home, "grid")
        ] == expected


def one_by_one(home, stream, places):
    """Snapshots at places of the log, each by a read of the one before."""
    return [take_snapshot(home, stream, place) for place in places]


@tries(8)
@given(histories(), st.integers(1, 3), st.integers(1, 20))
def test_snapshots_taken_together_are_those_that_are_taken_one_by_one(
    history, together, rows
):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        home, stream = Home(Path(folder) / "together"), settings_of(history)
        run(home, stream, (*history[:4], [False] * len(history[1])), levels=False)
        alone = Home(Path(folder) / "alone")
        shutil.copytree(home.root, alone.root)
        patch.setattr(taking, "TOGETHER", together)
        patch.setattr(taking, "parts", partial(stored.parts, rows=rows))
        taken = take_due(home, stream)
        patch.undo()
        assert taken == snapshots(home, "grid")
        assert taken == one_by_one(alone, stream, [each.position for each in taken])
        paths = [one.table("snapshots", "grid") for one in (home, alone)]
        assert tables.version(paths[0]) == (-(-len(taken) // together) or None)
        assert tables.stored(paths[0])[0] == tables.stored(paths[1])[0] == len(taken)
        if taken:
            kept = [without_doubts(tables.read(path)) for path in paths]
            assert kept[0] == kept[1]


def latest_all(fixes, every):
    """The kept reading, the number and the newest time of each object, fix after fix."""
    known = {}
    for name, t, x, y, gone in fixes:
        number, newest, kept = known.get(name, (0, None, None))
        if newest is not None and t <= newest:
            continue
        number = 1 if kept is not None and kept[3] else number + 1
        known[name] = (
            number,
            t,
            (t, x, y, gone) if gone or (number - 1) % every == 0 else kept,
        )
    return {
        (
            name,
            number,
            T0 + timedelta(seconds=newest),
            T0 + timedelta(seconds=kept[0]),
            kept[3],
        )
        for name, (number, newest, kept) in known.items()
    }


@tries(8)
@given(histories(), st.integers(1, 4))
def test_latest_has_every_kth_reading_of_each_object(history, every):
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of(history)
        stream = StreamSettings(
            **{name: getattr(stream, name) for name in stream.__slots__}
            | {"latest_every": every, "snapshot_s": None}
        )
        run(home, stream, history)
        rows = tables.read(home.table("latest", "grid"))
        assert values(
            rows, "object", "readings", "newest_ts", "event_ts", "gone"
        ) == latest_all(history[0], every)
        assert not tables.exists(home.table("snapshots", "grid"))
        found = tables.read(home.table("positions", "grid"))
        places = values(
            found.filter(pc.invert(found["gone"])), "segment", "row", "object", "x", "y"
        )
        assert (
            values(
                rows.filter(pc.invert(rows["gone"])),
                "segment",
                "row",
                "object",
                "x",
                "y",
            )
            <= places
        )


def walk(count):
    """One object that goes in and out of `left` once a second."""
    return [("a", t, 4 + t % 3, 1, False) for t in range(count)] + [
        ("b", count, 1, 1, False)
    ]


@pytest.fixture
def walked(tmp_path):
    """A home in which an object walked for 65 s, with a snapshot every 10 s."""
    home = Home(tmp_path)
    run(home, STREAM, (walk(65), [20, 40, 66], 0.0, None, [True, False, False]))
    return home


def test_changes_before_a_snapshot_are_not_needed(walked):
    times = [T0 + timedelta(seconds=t) for t in (41, 45, 50, 60, 66)]
    before = [answered(walked, "left", at).rows for at in times]
    where = [objects_at(walked, STREAM, at).rows for at in times]
    snapshot = newest_snapshot(walked, "grid", times[0])
    assert snapshot is not None
    assert snapshot.snapshot_ts == T0 + timedelta(seconds=40)
    changes, positions = (
        walked.table("changes", "grid"),
        walked.table("positions", "grid"),
    )
    DeltaTable(changes).delete(f"position < {snapshot.position}")
    DeltaTable(positions).delete(f"segment < {snapshot.position >> 24}")
    tables.compact(changes, before=None)
    assert [answered(walked, "left", at).rows for at in times] == before
    assert [objects_at(walked, STREAM, at).rows for at in times] == where


def test_a_question_reads_the_snapshot_and_what_came_after_it_and_nothing_else(walked):
    at = T0 + timedelta(seconds=55, milliseconds=500)
    found = answered(walked, "left", at)
    everything = tables.read(walked.table("changes", "grid"))
    wanted = pc.and_(
        pc.equal(everything["query"], "left"),
        pc.less_equal(everything["event_ts"], pa.scalar(at)),
    )
    (reads,) = found.reads
    assert reads.snapshot is not None
    assert reads.snapshot.snapshot_ts == T0 + timedelta(seconds=50)
    after = pc.and_(
        wanted, pc.greater_equal(everything["position"], reads.snapshot.position)
    )
    assert reads.after_rows == pc.sum(after).as_py() < pc.sum(wanted).as_py() / 4
    assert reads.snapshot_rows <= 1
    seen = objects_at(walked, STREAM, at)
    assert (seen.reads.snapshot_rows, seen.reads.after_rows) == (1, 5)


def test_without_snapshots_all_changes_are_read(tmp_path):
    home, stream = (
        Home(tmp_path),
        StreamSettings(
            **{name: getattr(STREAM, name) for name in STREAM.__slots__}
            | {"snapshot_s": None}
        ),
    )
    run(home, stream, (walk(65), [66], 0.0, None, [True]))
    found = answered(home, "left", T0 + timedelta(seconds=55))
    assert found.reads[0].snapshot is None
    assert found.reads[0].after_rows > 30
    assert values(found.rows, "object", "partner", "since_ts") == fold_all(
        home, "left", T0 + timedelta(seconds=55)
    )
    with pytest.raises(FairwayError, match="takes no snapshots"):
        take_snapshot(home, stream, 1)


def test_a_snapshot_can_be_taken_anywhere_but_once_and_not_before_another(walked):
    taken = snapshots(walked, "grid")
    assert [(each.snapshot_ts - T0).seconds for each in taken] == [
        0,
        10,
        20,
        30,
        40,
        50,
        60,
    ]
    rows = len(tables.read(walked.table("snapshots", "grid")))
    assert take_snapshot(walked, STREAM, taken[-1].position) == taken[-1]
    assert take_due(walked, STREAM) == []
    with pytest.raises(FairwayError, match="they go forward"):
        take_snapshot(walked, STREAM, taken[-2].position)
    with pytest.raises(FairwayError, match="not to"):
        take_snapshot(walked, STREAM, position_of(99, 0))
    assert len(tables.read(walked.table("snapshots", "grid"))) == rows
    by_hand = take_snapshot(walked, STREAM, taken[-1].position + 3)
    assert by_hand.snapshot_ts == T0 + timedelta(seconds=70)
    assert fold_all(walked, "left", T0 + timedelta(seconds=90)) == values(
        answered(walked, "left").rows, "object", "partner", "since_ts"
    )


@pytest.fixture
def backlog(tmp_path):
    """A home in which an object walked for 95 s, of which no snapshot was taken."""
    home = Home(tmp_path / "backlog")
    run(home, STREAM, (walk(95), [96], 0.0, None, [False]), levels=False)
    return home


def test_a_crash_between_two_commits_lets_snapshots_be_taken_anew_once(
    backlog, tmp_path, monkeypatch
):
    alone = Home(tmp_path / "alone")
    shutil.copytree(backlog.root, alone.root)
    whole = take_due(alone, STREAM)
    monkeypatch.setattr(taking, "TOGETHER", 4)
    made = taking._made

    def dies(*given):
        for number, one in enumerate(made(*given)):
            if number == 6:
                raise InterruptedError
            yield one

    monkeypatch.setattr(taking, "_made", dies)
    with pytest.raises(InterruptedError):
        take_due(backlog, STREAM)
    assert snapshots(backlog, "grid") == whole[:4]
    monkeypatch.setattr(taking, "_made", made)
    assert take_due(backlog, STREAM) == whole[4:]
    rows = [tables.read(home.table("snapshots", "grid")) for home in (backlog, alone)]
    assert without_doubts(rows[0]) == without_doubts(rows[1])


def test_of_two_who_take_snapshots_one_leaves_the_rest_to_the_other(
    backlog, monkeypatch
):
    monkeypatch.setattr(taking, "TOGETHER", 4)
    made = taking._made

    def overtaken(*given):
        for number, one in enumerate(made(*given)):
            if number == 6:
                monkeypatch.setattr(taking, "_made", made)
                other.extend(take_due(backlog, STREAM))
            yield one

    other = []
    monkeypatch.setattr(taking, "_made", overtaken)
    own = take_due(backlog, STREAM)
    assert [len(own), len(other)] == [4, 6]
    assert own + other == snapshots(backlog, "grid")
    rows = tables.read(backlog.table("snapshots", "grid"))
    assert len(rows) == len(set(without_doubts(rows)))


def test_a_backlog_is_read_as_often_as_one_snapshot(backlog, monkeypatch):
    """How often tables are read does not depend on how many snapshots are due."""
    read, counts = tables.read, []

    def counted(*given, **named):
        counts[-1] += 1
        return read(*given, **named)

    monkeypatch.setattr(tables, "read", counted)
    for most in (1, 8):
        counts.append(0)
        assert len(take_due(backlog, STREAM, most=most)) == most
    assert counts[1] <= counts[0] + 4, "the second time there is one to begin with"


def test_where_no_fix_was_accepted_there_is_nothing_to_take(tmp_path):
    home, log = Home(tmp_path), bare_log(tmp_path / "streams" / "grid" / "log")
    stream = replace(
        STREAM,
        attributes={"error": "double"},
        units={"error": "m"},
        position_filter=PositionFilter(accuracy="error", max_accuracy_m=10.0),
    )
    register(home, {"grid": stream}, parse(QUERIES), owner="t")
    epoch = round(T0.timestamp())
    told = [(1, 99), (15, 99), (25, 99), (35, 1), (45, 1), (55, 99)]
    lines = [f"a,{epoch + t},1,1,,{error}" for t, error in told]
    log.append("\n".join(["id,t,x,y,gone,error", *lines]).encode(), arrival_us=0)
    follow(home, stream)
    taken = take_due(home, stream)
    assert [each.position for each in taken] == [position_of(1, 4), position_of(1, 5)]
    assert take_due(home, stream) == []


def test_a_long_history_is_read_in_parts(walked, monkeypatch):
    whole = list(stored.parts(walked.table("positions", "grid"), 0, position_of(4, 0)))
    assert whole == [(0, position_of(4, 0))]
    cut = list(
        stored.parts(walked.table("positions", "grid"), 5, position_of(4, 0), rows=20)
    )
    assert len(cut) == 4
    assert (cut[0][0], cut[-1][1]) == (5, position_of(4, 0))
    assert all(before[1] == after[0] for before, after in pairwise(cut))
    found = [
        row
        for low, high in cut
        for row in stored.fixes(walked, "grid", low, high, ("x",))[
            "position"
        ].to_pylist()
    ]
    assert len(found) == len(set(found)) == 66


@pytest.mark.filterwarnings("default::DeprecationWarning")  # Great Expectations
def test_what_the_contracts_promise_of_the_levels_is_kept(walked):
    for name in ("latest", "snapshots"):
        rows, contract = tables.read(walked.table(name, "grid")), load_contract(name)
        _, judged = ArrowRows(rows.select).judge(name, contract.rules)
        assert all(one.passed for one in judged.values())
        assert len(rows)
        assert len(judged)


def test_objects_that_moving_queries_go_with_have_a_row_for_each_of_them(tmp_path):
    home, log = Home(tmp_path), bare_log(tmp_path / "streams" / "grid" / "log")
    moving = """
    REGISTER QUERY around_a AS SELECT * FROM grid INSIDE ('M', 'a', 3);
    REGISTER QUERY near_a AS SELECT * FROM grid kNN ('M', 2, 'a');
    REGISTER QUERY around_b AS SELECT * FROM grid INSIDE ('M', 'b', 2, 2);
    REGISTER QUERY around_nobody AS SELECT * FROM grid INSIDE ('M', 'nobody', 3);
    """
    streams = {"grid": STREAM}
    register(home, streams, parse(QUERIES + moving), owner="t")
    segment(log, [("a", 1, 1, 1, False), ("b", 1, 2, 2, False), ("c", 2, 3, 3, False)])

    def flushed(focals):
        archive = Archive(home, STREAM)
        while archive.batch():
            pass
        flush_latest(home, STREAM, focals)
        rows = tables.read(home.table("latest", "grid"))
        return values(rows, "object", "query", "query_version", "x"), rows

    kept = Focals("grid")
    found, _ = flushed(kept)
    alone = {("a", None, None, 1.0), ("b", None, None, 2.0), ("c", None, None, 3.0)}
    assert found == alone | {
        ("a", "around_a", 1, 1.0),
        ("a", "near_a", 1, 1.0),
        ("b", "around_b", 1, 2.0),
    }
    drop(home, "near_a")
    register(
        home,
        streams,
        parse("REPLACE QUERY around_b AS SELECT * FROM grid INSIDE ('M', 'a', 5)"),
        owner="t",
    )
    segment(log, [("a", 3, 4, 4, False)])
    found, rows = flushed(kept)
    alone = {("a", None, None, 4.0), ("b", None, None, 2.0), ("c", None, None, 3.0)}
    assert found == alone | {("a", "around_a", 1, 4.0), ("a", "around_b", 2, 4.0)}
    assert Focals("grid").at(home, position_of(5, 0)).sort_by("query") == kept.at(
        home, position_of(5, 0)
    ).sort_by("query")
    assert len(rows) == 5


def test_a_change_that_is_ahead_of_the_clock_makes_its_snapshot_serve_later(tmp_path):
    """An end mark makes the ticks due that wait: their changes are of a time that no fix has reached yet."""
    home, stamp = Home(tmp_path), pa.timestamp("us", "UTC")

    def times(*seconds):
        return pa.array(
            [round(T0.timestamp() * 1e6) + t * 1_000_000 for t in seconds], stamp
        )

    fixes = {
        "region_id": ["0"] * 4,
        "segment": pa.array([0, 0, 2, 2]),
        "row": pa.array([0, 1, 0, 1], pa.int32()),
        "event_ts": times(3, 9, 11, 31),
        "x": [1.0] * 4,
        "y": [1.0] * 4,
        "object": list("abab"),
        "gone": [False] * 4,
    }
    tables.append(
        home.table("positions", "grid"),
        pa.table(fixes),
        load_contract("positions"),
        app="archive-grid",
        version=2,
    )
    places = [
        position_of(0, 1),
        position_of(1, 0),
        position_of(2, 0),
        position_of(2, 1),
    ]
    changes = {
        "position": places,
        "seq": pa.array([0] * 4, pa.int32()),
        "event_ts": times(9, 14, 12, 32),
        "fix_ts": times(9, 9, 11, 31),
        "query_version": pa.array([1] * 4, pa.int32()),
        "sign": pa.array([1, -1, 1, -1], pa.int8()),
        "query": ["left"] * 4,
        "object": ["a"] * 4,
        "cause": ["enter", "leave"] * 2,
    }
    register(home, {"grid": STREAM}, parse(QUERIES), owner="t")
    done = position_of(3, 0) - 1
    tables.append(
        home.table("changes", "grid"),
        pa.table(changes),
        load_contract("changes"),
        app="engine",
        version=done,
    )
    taken = take_due(home, STREAM)
    assert [each.position for each in taken] == places[2:]
    assert [(each.from_ts - T0).seconds for each in taken] == [14, 14]
    for seconds in range(35):
        at = T0 + timedelta(seconds=seconds)
        assert values(
            answered(home, "left", at).rows, "object", "partner", "since_ts"
        ) == fold_all(home, "left", at)


def test_values_and_fields_are_the_newest_and_survive_a_snapshot():
    schema = load_contract("changes").arrow_schema()

    def change(position, sign, name, value, fields):
        at = T0 + timedelta(seconds=position)
        return {
            "event_date": at.date(),
            "position": position,
            "seq": 0,
            "event_ts": at,
            "query_version": 1,
            "sign": sign,
            "value": value,
            "query": "q",
            "object": name,
            "cause": "enter",
            "fields": fields,
        }

    rows = [
        change(1, 1, "*", 1.0, None),
        change(2, -1, "*", 1.0, None),
        change(3, 1, "*", 2.0, None),
        change(4, 1, "a", None, '{"v": 1}'),
        change(5, 0, "a", 7.5, '{"v": 2}'),
        change(6, 0, "a", None, None),
    ]
    for cut in range(len(rows) + 1):
        before = fold(pa.Table.from_pylist(rows[:cut], schema=schema))
        found = fold(pa.Table.from_pylist(rows[cut:], schema=schema), before)
        shown = values(found, "object", "value", "fields", "position", "since_ts")
        assert shown == {
            ("*", 2.0, None, 3, T0 + timedelta(seconds=3)),
            ("a", 7.5, '{"v": 2}', 4, T0 + timedelta(seconds=4)),
        }
