"""Position filters: fixes that are stored with a reason, keep their object from being silent, and change nothing."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.answers.history import objects_at
from st_common.answers.places_sample import places_sample
from st_common.batch.reset import reset
from st_common.checks.audit import audit
from st_common.checks.verify import verify
from st_common.checks.why import why
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams, stream_of
from st_common.engine.archive import Archive
from st_common.engine.run import run
from st_common.engine.topology import begin
from st_common.errors import ConfigError, QueryError
from st_common.log.control import write_end
from st_common.log.record_settings import log_for
from st_common.operations.status import read_status
from st_common.quality.tally import tally
from st_common.query.registry import register
from st_common.query.text import parse

pytestmark = pytest.mark.spec("X11")

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    engine="local",
    max_ahead_s=None,
    attributes={"error": "double"},
    units={"error": "m"},
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
FAST = replace(CARS, position_filter=PositionFilter(max_speed_mps=50.0))
QUERY = "REGISTER QUERY near AS SELECT * FROM cars INSIDE (0, 0, 1000, 1000);"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    register(home, {"cars": CARS}, parse(QUERY), owner="me")
    return home


ARRIVAL_US = 1 << 51


def captured(home: Home, stream: StreamSettings, *rows: str) -> None:
    """Rows `id,t,x[,error]` of cars that drive along y = 0, as one segment."""
    fields = [row.split(",") for row in rows]
    lines = [
        f"{name},{t},{x},0,{error[0] if error else ''}" for name, t, x, *error in fields
    ]
    text = "\n".join(("id,t,x,y,error", *lines)) + "\n"
    log_for(home, stream).append(text.encode(), arrival_us=ARRIVAL_US)


def ran(home: Home, stream: StreamSettings, *rows: str) -> StreamSettings:
    captured(home, stream, *rows)
    run(home, stream, until_idle=True)
    return stream


def said(home: Home) -> list[tuple]:
    """What the table of positions says of each fix: time in seconds, the reason, and what was too much."""
    rows = tables.read(home.table("positions", "cars")).sort_by(
        [("segment", "ascending"), ("row", "ascending")]
    )
    return [
        (row["event_ts"].timestamp(), row["filtered"], row["filtered_value"])
        for row in rows.to_pylist()
    ]


def told(home: Home) -> list[tuple]:
    return [
        (row["event_ts"].timestamp(), row["object"], row["sign"], row["cause"])
        for row in stream_changes(home, "cars").to_pylist()
    ]


def holds(home: Home, stream: StreamSettings) -> bool:
    problems = [found.problem for found in audit(home, stream) if found.problem]
    return problems == [] and all(found.holds for found in verify(home, stream))


def test_a_jump_that_no_car_can_make_is_stored_with_its_speed_and_changes_nothing(home):
    ran(home, FAST, "a,1,10", "a,2,5010", "a,3,20")
    assert said(home) == [(1, None, None), (2, "speed", 5000.0), (3, None, None)]
    assert told(home) == [(1, "a", 1, "enter")]
    assert answer(home, "near")["object"].to_pylist() == ["a"]
    assert holds(home, FAST)


def test_without_the_filter_the_same_jump_leaves_and_comes_back(home):
    ran(home, CARS, "a,1,10", "a,2,5010", "a,3,20")
    assert told(home) == [
        (1, "a", 1, "enter"),
        (2, "a", -1, "leave"),
        (3, "a", 1, "enter"),
    ]
    assert (
        "filtered" not in tables.dataset(home.table("positions", "cars")).schema.names
    )


def test_a_wild_first_fix_blocks_its_object_until_the_time_allows_for_the_way(home):
    ran(home, FAST, "a,0,1000000", "a,10,10", "a,10000,20", "a,20001,30", "a,20002,40")
    assert [reason for _, reason, _ in said(home)] == [
        None,
        "speed",
        "speed",
        None,
        None,
    ]


def test_a_last_fix_that_is_too_old_is_no_measure(home):
    stream = replace(
        CARS, position_filter=PositionFilter(max_speed_mps=50.0, accept_after_s=60.0)
    )
    ran(home, stream, "a,0,1000000", "a,60,10", "a,61,20", "a,62,30")
    assert [reason for _, reason, _ in said(home)] == [None, "speed", None, None]
    assert holds(home, stream)


def test_a_car_that_stands_is_told_of_again_when_it_has_moved_far_enough(home):
    stream = replace(CARS, position_filter=PositionFilter(min_distance_m=30.0))
    ran(home, stream, "a,1,0", "a,2,29", "a,3,30", "a,4,59", "a,5,31", "a,6,0")
    assert said(home) == [
        (1, None, None),
        (2, "distance", 29.0),
        (3, None, None),
        (4, "distance", 29.0),
        (5, "distance", 1.0),
        (6, None, None),
    ]


def test_a_fix_that_may_be_anywhere_is_filtered_and_one_that_says_nothing_is_not(home):
    limits = PositionFilter(accuracy="error", max_accuracy_m=100.0)
    ran(home, replace(CARS, position_filter=limits), "a,1,0,101", "a,2,0,100", "a,3,0")
    assert said(home) == [(1, "accuracy", 101.0), (2, None, None), (3, None, None)]
    assert told(home) == [(2, "a", 1, "enter")]


def test_a_move_within_the_accuracies_of_both_is_none(home):
    limits = PositionFilter(accuracy="error", beyond_accuracy=True)
    stream = replace(CARS, position_filter=limits)
    ran(home, stream, "a,1,0,5", "a,2,14,10", "a,3,15,10", "a,4,16", "a,5,25")
    assert [reason for _, reason, _ in said(home)] == [
        None,
        "within_accuracy",
        None,
        "within_accuracy",
        None,
    ]
    assert holds(home, stream)


def test_the_unit_of_an_accuracy_counts(home):
    limits = PositionFilter(accuracy="error", max_accuracy_m=100.0)
    stream = replace(CARS, units={"error": "km"}, position_filter=limits)
    ran(home, stream, "a,1,0,0.1", "a,2,0,0.2")
    assert said(home)[1] == (2, "accuracy", 200.0)


def test_a_filtered_fix_keeps_its_object_from_being_silent(home):
    stream = replace(FAST, silence_s=10.0)
    ran(home, stream, "a,1,10", "b,1,10", "a,9,5010", "b,18,30", "c,19,10", "d,20,0")
    assert told(home)[2:] == [
        (11, "b", -1, "expired"),
        (18, "b", 1, "enter"),
        (19, "c", 1, "enter"),
        (19, "a", -1, "expired"),
        (20, "d", 1, "enter"),
    ]
    assert holds(home, stream)
    at = datetime.fromtimestamp(18, UTC)
    assert objects_at(home, stream, at).rows["object"].to_pylist() == ["a", "b"]


def test_who_was_never_believed_does_not_expire(home):
    limits = PositionFilter(accuracy="error", max_accuracy_m=100.0)
    stream = replace(CARS, silence_s=10.0, position_filter=limits)
    ran(home, stream, "a,1,0,500", "b,30,0")
    assert told(home) == [(30, "b", 1, "enter")]


def test_fixes_in_disorder_are_filtered_in_the_order_of_time(home):
    stream = replace(FAST, lateness_s=5.0)
    ran(home, stream, "a,1,10", "a,3,20", "a,2,5010")
    assert not tables.committed(home.table("positions", "cars"), "archive-cars") or (
        said(home) == []
    )
    write_end(log_for(home, stream), arrival_us=1 << 51)
    run(home, stream, until_idle=True)
    assert said(home) == [(1, None, None), (3, None, None), (2, "speed", 5000.0)]
    assert holds(home, stream)


def test_other_limits_hold_from_their_place_in_the_log_on(home):
    slow = replace(CARS, position_filter=PositionFilter(max_speed_mps=5.0))
    captured(home, CARS, "a,1,0", "a,2,100")
    captured(home, FAST, "a,3,200", "a,4,190")
    captured(home, slow, "a,5,280", "a,6,285")
    ran(home, CARS, "a,7,1000")
    reasons = [None, None, "speed", None, "speed", "speed", None]
    assert [reason for _, reason, _ in said(home)] == reasons
    assert holds(home, CARS)


def test_an_archive_that_begins_anywhere_says_the_same(home):
    stream = begin(home, FAST, engine="local", shards=1)
    for second in range(40):
        captured(
            home, stream, f"a,{second},{5000 * (second % 3)}", f"b,{second},{second}"
        )
    for _ in range(4):  # each time by another process, which knows nothing
        archive = Archive(home, stream)
        archive._pace = replace(archive._pace, segments=11)
        archive.batch()
    assert [at for at, _, _ in said(home)] == [
        second for second in range(40) for _ in "ab"
    ]
    reasons = [reason for _, reason, _ in said(home)[::2]]
    assert reasons == [None if second % 3 == 0 else "speed" for second in range(40)]


def test_a_sample_of_places_has_none_that_was_filtered(home):
    ran(home, FAST, "a,1,10", "a,2,5010", "a,3,20")
    since = datetime(1970, 1, 1, tzinfo=UTC)
    until = since + timedelta(seconds=9)
    sample = places_sample(home, "cars", since=since, until=until, most=10)
    assert (sorted(sample.x.tolist()), sample.count) == ([10, 20], 2)


def test_all_records_are_accounted_for(home):
    captured(home, FAST, "a,1,10", "a,2,5010", "a,3,20", "a,2,20", "a,3,20", "b,x,1")
    ran(home, FAST)
    counted = tally(home, FAST, datetime(1970, 1, 1, tzinfo=UTC).date())
    assert (counted.fixes, counted.late, counted.double) == (5, 1, 1)
    assert (counted.filtered, counted.rejects) == ({"speed": 1}, {})
    arrived = datetime.fromtimestamp(ARRIVAL_US / 1e6, UTC).date()
    assert tally(home, FAST, arrived).rejects == {"bad_time": 1}
    status = read_status(home.stream("cars"))
    assert status is not None
    assert (status.fixes, status.late, status.double) == (5, 1, 1)
    assert status.filtered == {"speed": 1}


def test_a_reset_filters_all_fixes_by_the_limits_of_then(home):
    ran(home, CARS, "a,1,10", "a,2,5010", "a,3,20")
    reset(home, "cars")
    run(home, FAST, until_idle=True)
    assert [reason for _, reason, _ in said(home)] == [None, "speed", None]


def test_a_table_that_says_something_else_than_the_rules_is_found(home):
    stream = ran(home, FAST, "a,1,10", "a,2,5010", "a,3,20")
    strict = replace(stream, position_filter=PositionFilter(max_speed_mps=4.0))
    log = log_for(home, stream)
    said = json.loads(log.storage.read("reading.json").replace(b"50.0", b"4.0"))
    del said["crc32"]  # as of a version that wrote none
    tag = log.storage.tagged("reading.json")[1]
    log.storage.replace("reading.json", json.dumps(said).encode(), tag=tag)
    problems = [found.problem for found in audit(home, strict) if found.problem]
    assert problems[0] == "segment 1, row 2: accepted, not speed, and 0 others"


@pytest.fixture
def conf(tmp_path: Path):
    def written(
        more: str, attributes: str = '{ error = "double m" }'
    ) -> StreamSettings:
        path = tmp_path / "streams.toml"
        path.write_text(
            f"""[streams.cars]
format = "csv"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
attributes = {attributes}
[streams.cars.position_filter]
{more}
"""
        )
        return stream_of(load_streams(path), "cars")

    return written


def test_a_filter_is_a_table_of_its_stream(conf):
    found = conf('accuracy = "error"\nmax_accuracy_m = 50\nmax_speed_mps = "off"')
    assert found.position_filter == PositionFilter(accuracy="error", max_accuracy_m=50)


@pytest.mark.parametrize(
    ("text", "attributes", "wrong"),
    [
        ("max_speed = 5", "{ }", "unknown key 'max_speed'"),
        ("max_speed_mps = 0", "{ }", "must be above 0"),
        ("accept_after_s = 5", "{ }", "has no limit"),
        ("max_accuracy_m = 5", "{ }", "accuracy is missing"),
        ('accuracy = "e"\nbeyond_accuracy = true', "{ }", "no attribute with a unit"),
        (
            'accuracy = "e"\nbeyond_accuracy = true',
            '{ e = "double" }',
            "no attribute with a unit of length",
        ),
        (
            'accuracy = "e"\nbeyond_accuracy = true',
            '{ e = "double s" }',
            "no attribute with a unit of length",
        ),
        ("max_speed_mps = 5", '{ Filtered = "string" }', "attribute 'Filtered'"),
    ],
)
def test_a_wrong_filter_is_an_error_that_names_it(conf, text, attributes, wrong):
    with pytest.raises(ConfigError, match=wrong):
        conf(text, attributes)


def test_people_are_told_how_many_were_filtered(home, tmp_path):
    stream = ran(home, FAST, "a,1,10", "a,2,5010", "a,3,20")
    (tmp_path / "streams.toml").write_text(
        f"""[streams.{stream.name}]
format = "csv"
crs = "planar"
engine = "local"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
"""
    )
    found = CliRunner().invoke(
        app, ["--home", str(home.root), "--conf", str(tmp_path), "status"]
    )
    assert "cars: filtered 1 by speed" in found.output


def test_why_says_what_was_filtered_since_a_change(home, tmp_path):
    ran(home, FAST, "a,1,10", "a,2,5010", "a,3,20", "b,1,99999", "b,2,10")
    found = why(home, "near", "a").filtered
    assert found is not None
    assert (found.count, found.reason, found.value, found.fix.x) == (
        1,
        "speed",
        5000.0,
        5010.0,
    )
    told_in_words = CliRunner().invoke(
        app, ["--home", str(home.root), "--conf", str(tmp_path), "why", "near", "a"]
    )
    assert "1 fix since then; the last: implausible speed, 5000 m/s" in " ".join(
        told_in_words.output.split()
    )


def test_why_says_of_who_was_never_in_an_answer_what_was_filtered(home):
    ran(home, FAST, "b,1,99999", "b,2,10")
    with pytest.raises(QueryError) as raised:
        why(home, "near", "b")
    assert raised.value.hint == (
        "1 of its fixes are filtered, the last: implausible speed, 99989 m/s"
    )
