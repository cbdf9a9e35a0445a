"""How records are read stands in the log: such settings hold from a place on, for every reader alike (S2, S3)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from st_common import tables
from st_common.answers.answers import answer
from st_common.batch.reset import reset
from st_common.checks.audit import audit
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.run import run
from st_common.engine.topology import begin
from st_common.errors import LogError, StateError
from st_common.log.control import write_clock
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.log.record_settings import (
    Readings,
    begin_anew,
    log_for,
    reading_of,
    record_of,
    settle,
)
from st_common.operations.alerts import read_alerts
from st_common.partitioning.sources import log_points
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.replay.files import replay
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    engine="local",
    max_ahead_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
SEMICOLONS = replace(
    CARS, delimiter=";", columns=Columns(object="car", event_ts="t", x="x", y="y")
)
QUERY = "REGISTER QUERY square AS SELECT * FROM cars INSIDE (0, 0, 10, 10);"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def log_of(home: Home) -> Log:
    return bare_log(home.log("cars"))


def captured(home: Home, stream: StreamSettings, text: str, **options: object) -> None:
    path = home.root.parent / "records"
    path.write_text(text, encoding="utf-8")
    replay(
        log_of(home),
        path,
        stream,
        end_mark=False,
        clock=lambda: 1_000_000_000,
        **options,
    )


def stored(home: Home, *columns: str) -> list[tuple]:
    rows = tables.read(home.table("positions", "cars")).sort_by(
        [("segment", "ascending"), ("row", "ascending")]
    )
    return [
        tuple(row[name] for name in ("object", "x", *columns))
        for row in rows.to_pylist()
    ]


def holds(home: Home, stream: StreamSettings) -> bool:
    return [found for found in audit(home, stream) if found.problem] == []


@pytest.mark.spec("S2", "S3")
def test_a_running_stream_goes_on_with_other_columns_and_another_delimiter(home):
    register(home, {"cars": CARS}, parse(QUERY), owner="me")
    captured(home, CARS, "id,t,x,y\na,1,5,5\n")
    run(home, CARS, until_idle=True)
    captured(home, SEMICOLONS, "car;t;x;y\nb;2;6;6\n")
    run(home, SEMICOLONS, until_idle=True)
    assert answer(home, "square")["object"].to_pylist() == ["a", "b"]
    assert stored(home) == [("a", 5.0), ("b", 6.0)]
    assert holds(home, SEMICOLONS)
    assert [len(one) for one in log_points(home, [SEMICOLONS]).read()] == [1, 1]


@pytest.mark.spec("S2")
def test_what_was_captured_before_the_first_run_is_read_as_it_was_captured(home):
    captured(home, SEMICOLONS, "car;t;x;y\nb;2;6;6\n")
    run(home, CARS, until_idle=True)
    captured(home, CARS, "id,t,x,y\na,3,5,5\n")
    run(home, CARS, until_idle=True)
    assert stored(home) == [("b", 6.0), ("a", 5.0)]


@pytest.mark.spec("S2")
def test_a_limit_that_is_changed_while_the_archive_is_behind_makes_no_difference_between_tables(
    home,
):
    late, strict = CARS, replace(CARS, max_ahead_s=1.0)
    captured(home, late, "id,t,x,y\na,5000,5,5\n")
    engine_only = begin(home, late, engine="local", shards=1)
    captured(home, strict, "id,t,x,y\nb,5001,5,5\nc,1000,5,5\n")
    behind = Archive(
        home, engine_only
    )  # it began with the older settings, and archives after the change
    while behind.batch():
        pass
    done = run(home, strict, until_idle=True)
    assert (done.fixes, done.rejects) == (2, 1)
    assert stored(home) == [("a", 5.0), ("c", 5.0)]
    assert tables.read(home.table("rejects"))["reason"].to_pylist() == ["too_far_ahead"]
    assert holds(home, strict)


@pytest.mark.spec("S2", "S3")
def test_attributes_come_and_go_from_a_place_on(home):
    speed = replace(CARS, attributes={"speed": "double"})
    for stream, text in (
        (CARS, "id,t,x,y,speed\na,1,5,5,7\n"),
        (speed, "id,t,x,y,speed\nb,2,5,5,8\n"),
    ):
        captured(home, stream, text)
        run(home, stream, until_idle=True)
    captured(home, CARS, "id,t,x,y,speed\nc,3,5,5,9\n")
    run(home, speed, until_idle=True)  # who runs it has the settings of before again
    assert stored(home, "speed") == [
        ("a", 5.0, None),
        ("b", 5.0, 8.0),
        ("c", 5.0, None),
    ]
    assert holds(home, speed)


def test_an_attribute_keeps_its_type_while_rows_stand(home):
    captured(
        home,
        replace(CARS, attributes={"speed": "double"}),
        "id,t,x,y,speed\na,1,5,5,7\n",
    )
    captured(home, CARS, "id,t,x,y,speed\na,2,5,5,7\n")
    for attributes in ({"speed": "long"}, {"Speed": "double"}):
        wrong = replace(CARS, attributes=attributes)
        with pytest.raises(
            StateError,
            match=r"was begun with the attribute speed = 'double', now it is",
        ):
            captured(home, wrong, "id,t,x,y,speed\na,1,5,5,7\n")
        with pytest.raises(StateError, match="was begun with the attribute"):
            run(home, wrong, until_idle=True)
    reset_by_hand = log_of(home)
    begin_anew(reset_by_hand)
    run(home, replace(CARS, attributes={"speed": "long"}), until_idle=True)
    assert stored(home, "speed") == [("a", 5.0, 7), ("a", 5.0, 7)]


def test_what_decides_answers_otherwise_is_fixed_as_before(home):
    captured(home, CARS, "id,t,x,y\na,1,5,5\n")
    run(home, CARS, until_idle=True)
    for wrong in (
        replace(CARS, lateness_s=5.0),
        replace(CARS, crs="EPSG:4326"),
        replace(CARS, moving=False),
    ):
        with pytest.raises(StateError, match="was begun with"):
            run(home, wrong, until_idle=True)


@pytest.mark.spec("S3")
def test_a_reset_reads_all_anew_and_new_rows_hold_behind_it(home):
    captured(home, CARS, "id,t,x,y\na,1,5,50\n")
    run(home, CARS, until_idle=True)
    swapped = replace(CARS, columns=Columns(object="id", event_ts="t", x="y", y="x"))
    captured(home, swapped, "id,t,x,y\nb,2,6,60\n")
    reset(home, "cars")
    other = replace(CARS, columns=Columns(object="id", event_ts="t", x="t", y="y"))
    run(home, other, until_idle=True)
    assert stored(home) == [("a", 1.0), ("b", 2.0)]
    captured(home, other, "id,t,x,y\nc,3,7,70\n")
    captured(home, swapped, "id,t,x,y\nd,4,8,80\n")
    run(home, swapped, until_idle=True)
    assert stored(home) == [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 80.0)]
    assert holds(home, swapped)


def test_a_capture_that_goes_on_while_another_changes_the_settings_is_read_by_its_own(
    home,
):
    path = home.root.parent / "long"
    path.write_text(
        "id,t,x,y\n" + "".join(f"a{n},{n},{n},1\n" for n in range(4)), encoding="utf-8"
    )

    def sleep(_: float) -> None:
        captured(home, SEMICOLONS, "car;t;x;y\nb;2;6;6\n")

    replay(
        log_of(home),
        path,
        CARS,
        rate=1.0,
        segment_s=1.0,
        end_mark=False,
        clock=lambda: 10**9,
        sleep=sleep,
    )
    run(home, CARS, until_idle=True)
    found = [name for name, _ in stored(home)]
    assert sorted(set(found)) == ["a0", "a1", "a2", "a3", "b"]
    assert found.count("b") > 0
    assert (
        not tables.exists(home.table("rejects"))
        or len(tables.read(home.table("rejects"))) == 0
    )


def test_a_home_of_an_older_version_is_read_as_its_settings_were_fixed(home):
    log_of(home).append(b"car;t;x;y\nb;2;6;6\n", arrival_us=1)
    run(home, SEMICOLONS, until_idle=True)
    topology = home.stream("cars") / "topology.json"
    older = json.loads(topology.read_text()) | {
        name: value
        for name, value in reading_of(SEMICOLONS).items()
        if name not in ("attributes", "units")
    }
    del older["crc32"]
    topology.write_text(json.dumps(older))
    (home.log("cars") / "reading.json").unlink()
    run(home, CARS, until_idle=True)
    log = log_of(home)
    assert [one.reading for one in log.segments(0)] == [False, True]
    log.append(b"id,t,x,y\na,3,5,5\n", arrival_us=1)
    read_by = [piece.stream.delimiter for piece in pieces(log, log.segments(0), CARS)]
    assert read_by == [";", ";", ","]
    run(home, CARS, until_idle=True)
    assert stored(home) == [("b", 6.0), ("a", 5.0)]


def test_a_log_without_a_row_is_read_by_the_settings_of_its_reader(home):
    log = log_of(home)
    log.append(b"id,t,x,y\na,3,5,5\n", arrival_us=1)
    assert Readings(log, CARS).of(log.segment(0)) == CARS
    assert not (home.log("cars") / "reading.json").exists()


@pytest.mark.spec("S2")
def test_who_appends_by_hand_says_how_the_records_are_read_or_is_refused(home):
    """Each record is read by the settings of who appended it, whatever others said in between."""
    unsaid = Log(home.log("cars"))
    for append in (
        unsaid.append,
        lambda payload, **options: unsaid.append_all([payload], **options),
    ):
        with pytest.raises(
            LogError, match=r"nobody has said how records .* are read"
        ) as refused:
            append(b"id,t,x,y\na,3,5,5\n", arrival_us=1)
        assert "log_for" in refused.value.hint
    assert not home.log("cars").exists()
    unsaid.append(
        b'{"op":"end"}\n', arrival_us=1, control=True
    )  # of control rows there is one reading
    mine, other = log_for(home, SEMICOLONS), log_for(home, CARS)
    assert unsaid.end() == 1  # to open it says nothing
    mine.append(b"car;t;x;y\na;1;5;5\n", arrival_us=1)
    other.append(b"id,t,x,y\nb,2,6,6\n", arrival_us=1)
    mine.append_all([b"car;t;x;y\nc;3;7;7\n", b"car;t;x;y\nd;4;8;8\n"], arrival_us=1)
    run(home, CARS, until_idle=True)
    assert stored(home) == [("a", 5.0), ("b", 6.0), ("c", 7.0), ("d", 8.0)]


def test_who_captures_first_says_it_of_a_log_in_which_nothing_but_control_rows_stands(
    home,
):
    write_clock(Log(home.log("cars")), 1, arrival_us=1)
    captured(home, SEMICOLONS, "car;t;x;y\nb;2;6;6\n")
    assert [segment.reading for segment in Log(home.log("cars")).segments(0)] == [
        False,
        False,
    ]
    assert record_of(Log(home.log("cars"))).base == reading_of(SEMICOLONS)


def test_an_engine_says_from_where_on_records_are_read_otherwise(home):
    captured(home, CARS, "id,t,x,y\na,1,5,5\n")
    run(home, CARS, until_idle=True)
    run(home, CARS, until_idle=True)
    assert log_of(home).end() == 1  # nothing changed, so nothing was written
    run(home, SEMICOLONS, until_idle=True)
    texts = [alert.text for alert in read_alerts(home)]
    assert any(
        "from segment 1 of its log on records are read by other settings" in text
        for text in texts
    )
    assert any("fairway streams reset cars" in text for text in texts)


def test_a_replay_says_that_its_records_are_read_otherwise(home):
    path = home.root.parent / "records"
    path.write_text("id,t,x,y\na,1,2,3\n")
    first = replay(log_of(home), path, CARS)
    again = replay(log_of(home), path, CARS)
    other = replay(log_of(home), path, replace(CARS, nulls=("NA",)))
    assert (first.reading, again.reading, other.reading) == (
        None,
        None,
        other.first - 1,
    )


def test_a_row_of_a_newer_version_or_in_a_wrong_form_is_refused_and_one_passed_over_holds_no_longer(
    home,
):
    log = log_of(home)
    captured(home, CARS, "id,t,x,y\na,1,5,5\n")
    log.append(
        json.dumps({"op": "reading", "reading": {"charset": "latin1"}}).encode(),
        arrival_us=1,
        reading=True,
    )
    log.append(b"id,t,x,y\nb,3,5,5\n", arrival_us=1)
    with pytest.raises(LogError, match=r"charset.*newer version"):
        list(pieces(log, log.segments(0), CARS))
    for wrong in (
        {"columns": {"ob": 1}},
        {"format": "csv"},
        {"columns": {"object": "a", "x": "x", "y": "y"}},
    ):
        text = json.dumps({"op": "reading", "reading": wrong}).encode()
        number = log.append(text, arrival_us=1, reading=True).number
        log.append(b"id,t,x,y\nb,3,5,5\n", arrival_us=1)
        with pytest.raises(LogError):
            list(pieces(log, log.segments(number + 1), CARS))
    damaged = Path(log.place(1))
    damaged.write_bytes(b"nothing")
    log.skip(1, "by hand")
    assert next(
        piece.stream
        for piece in pieces(log, log.segments(0, end=3), SEMICOLONS)
        if piece.part
    ) == replace(
        SEMICOLONS, **{name: getattr(CARS, name) for name in ("columns", "delimiter")}
    )
    (home.log("cars") / "reading.json").write_text("{")
    with pytest.raises(LogError, match="how records are read"):
        settle(log, CARS)
