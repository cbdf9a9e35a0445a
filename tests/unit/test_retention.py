"""What is older than its retention goes, behind a snapshot and all readers; what is left answers as before."""

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answered
from st_common.answers.changes import stream_changes
from st_common.answers.follow import Follower
from st_common.answers.history import objects_at
from st_common.answers.sql import sql
from st_common.answers.tallies import Tallies
from st_common.batch.due import due_days
from st_common.batch.processed import processed_days
from st_common.batch.reprocess import reprocess
from st_common.checks.audit import audit
from st_common.checks.verify import verify
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams, stream_of
from st_common.delivery.progress import PROGRESS_FILE, Progress, write_progress
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.engine.topology import begin
from st_common.errors import ConfigError, FairwayError
from st_common.history.latest import flush_latest
from st_common.history.snapshots import snapshots
from st_common.history.taking import take_due
from st_common.history.told import first_told
from st_common.history.visits import sorted_visits
from st_common.maintenance.leftovers import clear_leftovers
from st_common.maintenance.maintain import maintain
from st_common.operations.history import days_of
from st_common.operations.status import STATUS_FILE, StreamStatus, write_status
from st_common.position import position_of
from st_common.quality.finding import Finding
from st_common.quality.record import record
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S4")

ROOT = Path(__file__).resolve().parents[2]
T0 = datetime(2024, 5, 1, tzinfo=UTC)
DAYS, KEPT_DAYS, STEP_H = 6, 2, 3
TODAY = date(2024, 5, 30)
STREAM = StreamSettings(
    name="grid",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    snapshot_s=6 * 3600.0,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
QUERY = "REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10);"
CONF = """
[streams.grid]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""


@pytest.fixture
def contracts(tmp_path, monkeypatch):
    """The contracts, but changes and positions are kept for two days, snapshots for one."""
    folder = tmp_path / "contracts"
    shutil.copytree(ROOT / "data_contracts", folder)
    for name, days in {
        "changes": KEPT_DAYS,
        "positions": KEPT_DAYS,
        "snapshots": 1,
    }.items():
        path = folder / f"{name}.odcs.yaml"
        text = path.read_text()
        (stated,) = (
            line for line in text.splitlines() if "property: retention" in line
        )
        value = stated.partition("value: ")[2].partition(",")[0]
        path.write_text(text.replace(f"value: {value}, unit", f"value: {days}, unit"))
    monkeypatch.setenv("FAIRWAY_CONTRACTS", str(folder))
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Six days of a stream, in which five objects go to and fro between left and right; all of it is committed."""
    home = Home(tmp_path_factory.mktemp("made") / "home")
    (home.root / "conf").mkdir(parents=True)
    (home.root / "conf" / "streams.toml").write_text(CONF)
    register(home, {"grid": STREAM}, parse(QUERY), owner="t")
    log, stream = (
        bare_log(home.log("grid")),
        begin(home, STREAM, engine="local", shards=1),
    )
    engine, archive = LocalEngine(home, stream), Archive(home, stream)
    for step in range(DAYS * 24 // STEP_H):
        log.append(segment(step), arrival_us=0)
        if step % 8 == 7:  # a day
            engine.batch()
            archive.batch()
    engine.close()
    flush_latest(home, STREAM)
    take_due(home, STREAM)
    clock_us = round((T0 + timedelta(days=DAYS)).timestamp() * 1e6)
    status = StreamStatus(
        state="idle", beat_ts=1, position=0, end_position=0, now_ts=clock_us
    )
    write_status(home.stream("grid"), status)
    return home


@pytest.fixture
def home(tmp_path, made, contracts):
    """A copy of that home for one test."""
    shutil.copytree(made.root, tmp_path / "home")
    return Home(tmp_path / "home")


def segment(step: int) -> bytes:
    at = round((T0 + timedelta(hours=STEP_H * step)).timestamp())
    fixes = [f"o{n},{at + n},{(step * (n + 3)) % 11},{n}" for n in range(5)]
    return "\n".join(["id,t,x,y", *fixes]).encode()


def times() -> list[datetime]:
    return [T0 + timedelta(hours=hours, minutes=30) for hours in range(0, DAYS * 24, 2)]


def asked(home: Home, at: datetime) -> tuple[list, list]:
    """The answer and the objects at a time."""
    rows = answered(home, "left", at).rows.to_pylist()
    return rows, objects_at(home, STREAM, at).rows.to_pylist()


def run(home: Home, *, purge: bool = True) -> dict[str, object]:
    return {each.table: each for each in maintain(home, today=TODAY, purge=purge)}


def test_answers_about_the_time_that_is_kept_stay_and_older_ones_are_refused_by_name(
    home,
):
    before = {at: asked(home, at) for at in times()}
    now = asked(home, None)
    done = run(home)
    since = T0 + timedelta(days=DAYS - KEPT_DAYS)
    for name in ("changes/grid", "positions/grid"):
        retained = done[name].retained
        assert (retained.since, retained.held_by) == (since.date(), "")
        assert retained.purged.rows > 0
    oldest = min(tables.read(home.table("positions", "grid"))["event_ts"].to_pylist())
    assert since - timedelta(days=1) <= oldest, "at most a day more than is promised"
    assert asked(home, None) == now
    assert all(asked(home, at) == before[at] for at in times() if at >= since)
    for question in (
        lambda: answered(home, "left", T0 + timedelta(hours=5)),
        lambda: objects_at(home, STREAM, T0 + timedelta(hours=5)),
    ):
        with pytest.raises(
            FairwayError, match=r"'grid' before 2024-05-0\dT.* were purged"
        ):
            question()
    again = run(home)
    assert all(each.retained.purged.files == 0 for each in again.values())
    assert asked(home, None) == now


@pytest.mark.spec("B6")
def test_a_stream_says_itself_for_how_long_it_is_kept(home):
    own = {"grid": replace(STREAM, positions_days=0, changes_days=4)}
    now, visits = asked(home, None), answered(home, "left", None).rows
    assert kept_since(home, own) == {
        "positions/grid": date(2024, 5, DAYS + 1),
        "changes/grid": date(2024, 5, DAYS - 3),
    }
    stored = tables.read(home.table("positions", "grid"))
    assert set(stored["event_date"].to_pylist()) <= {date(2024, 5, DAYS)}
    assert len(tables.read(home.table("changes", "grid"))) > len(stored)
    assert asked(home, None) == now
    assert answered(home, "left", None).rows == visits


def test_settings_of_retention_are_read_and_obeyed_by_the_command(home):
    conf = home.root / "conf" / "streams.toml"
    conf.write_text(CONF + "positions_days = 0\n")
    done = CliRunner().invoke(app, ["--home", str(home.root), "maintain"])
    assert done.exit_code == 0, done.output
    (line,) = (each for each in done.output.splitlines() if "positions/grid" in each)
    assert line.split()[-1] == f"2024-05-0{DAYS + 1}"
    conf.write_text(CONF + "positions_days = -1\n")
    with pytest.raises(ConfigError, match="positions_days = -1 must be a whole number"):
        stream_of(load_streams(conf.parent), "grid")


def kept_since(home: Home, streams: dict[str, StreamSettings]) -> dict[str, date]:
    done = {one.table: one for one in maintain(home, today=TODAY, streams=streams)}
    return {
        name: done[name].retained.since for name in ("positions/grid", "changes/grid")
    }


def test_who_asks_for_changes_behind_a_place_that_was_purged_is_told_where_they_begin(
    home,
):
    run(home)
    purged = tables.purged_before(home.table("changes", "grid"))
    assert purged > 0
    for ask in (
        lambda: stream_changes(home, "grid", since=5),
        lambda: Follower(home, "grid", after=(5, 0)),
    ):
        with pytest.raises(FairwayError, match=f"before position {purged} were purged"):
            ask()
    kept = stream_changes(home, "grid")
    assert stream_changes(home, "grid", since=purged - 1) == kept.filter(
        [place >= purged for place in kept["position"].to_pylist()]
    )
    told = CliRunner().invoke(
        app,
        ["--home", str(home.root), "answer", "left", "--at", "2024-05-01T05:00:00Z"],
    )
    assert (told.exit_code, "were purged" in told.stderr) == (2, True)


def test_a_delivery_that_is_behind_holds_what_it_has_not_delivered(home):
    place = position_of(12, 0)  # the second day; segment 0 is the registration
    write_progress(
        home.delivery("slow"), Progress(stream="grid", position=place, seq=0)
    )
    retained = run(home)["changes/grid"].retained
    assert retained.held_by == f"delivery slow stands at {place}"
    assert 0 < tables.purged_before(home.table("changes", "grid")) <= place
    Follower(home, "grid", after=(place, 0))
    write_progress(
        home.delivery("slow"),
        Progress(stream="grid", position=position_of(48, 0), seq=0),
    )
    assert run(home)["changes/grid"].retained.purged.rows > 0


def test_a_delivery_whose_progress_cannot_be_read_holds_everything(home):
    home.delivery("torn").mkdir(parents=True)
    (home.delivery("torn") / PROGRESS_FILE).write_text("{")
    retained = run(home)["changes/grid"].retained
    assert (retained.purged.rows, retained.held_by) == (0, "delivery torn stands at 0")


def test_without_a_snapshot_nothing_is_purged_and_the_report_says_why(home):
    shutil.rmtree(home.table("snapshots", "grid"))
    retained = run(home)["positions/grid"].retained
    assert retained.purged.rows == 0
    assert "no snapshot" in retained.held_by


def test_old_snapshots_become_one_a_day_and_those_of_purged_days_go(home):
    taken = {each.position for each in snapshots(home, "grid")}
    run(home)
    kept = snapshots(home, "grid")
    days = [each.snapshot_ts.date() for each in kept]
    assert {each.position for each in kept} < taken
    assert kept[0].position >= tables.purged_before(home.table("changes", "grid"))
    assert len(set(days[:-4])) == len(days[:-4]), "one a day, but for the last day"
    assert take_due(home, STREAM) == []


def test_verify_says_that_it_cannot_check_what_was_purged(home):
    assert [each.checked for each in verify(home, STREAM)] == [True]
    run(home)
    (checked,) = verify(home, STREAM)
    assert (checked.checked, checked.unchecked) == (
        False,
        "days of the fixes that it follows from were deleted",
    )
    findings = list(audit(home, STREAM))
    assert [each.what for each in findings if each.problem] == []
    assert any("purged" in each.unchecked for each in findings)


LAST = (T0 + timedelta(days=DAYS - 1)).date()
AFTER = LAST + timedelta(days=1)


@pytest.mark.spec("C6")
def test_days_that_follow_from_purged_fixes_are_not_processed_again(home):
    run(home)
    with pytest.raises(FairwayError, match="no day border behind them is kept"):
        reprocess(home, STREAM, LAST, AFTER)


@pytest.mark.spec("C6", "S4")
def test_days_behind_a_border_that_is_kept_are_processed_after_a_purge_too(home):
    reprocess(home, STREAM, T0.date(), AFTER)
    wanted = visits_of(home)[LAST]
    shutil.rmtree(home.table("visits", "grid"))
    tables.forget(home.table("visits", "grid"))
    run(home)
    done = reprocess(home, STREAM, LAST, AFTER)
    assert (done.began, done.fixes) == (LAST, 5 * 24 // STEP_H)
    assert [(day.compared, day.differs) for day in done.days] == [(True, 0)]
    stored = tables.read(home.table("visits", "grid"))
    assert sorted_visits(stored).to_pylist() == sorted(
        wanted, key=lambda row: [row[name] for name in ("object", "from_ts")]
    )


@pytest.mark.spec("C6", "S4")
def test_days_of_which_fixes_were_purged_are_due_no_more_and_go_out_of_the_record(home):
    reprocess(home, STREAM, T0.date(), AFTER)
    run(home)
    kept = days_of(home.table("positions", "grid"))
    assert len(kept) < len(processed_days(home, "grid")) == DAYS
    assert due_days(home, STREAM) is None
    clear_leftovers(home, home.root / "conf", today=TODAY)
    assert list(processed_days(home, "grid")) == kept
    assert due_days(home, STREAM) is None
    late = f"id,t,x,y\nlate,{round(T0.timestamp()) + (DAYS - 1) * 86_400},1,1"
    bare_log(home.log("grid")).append(late.encode(), arrival_us=0)
    assert Archive(home, STREAM).batch()
    due = due_days(home, STREAM)
    assert (due.since, due.until) == (LAST, AFTER)
    assert [day.day for day in reprocess(home, STREAM, LAST, AFTER).days] == [LAST]
    assert due_days(home, STREAM) is None


@pytest.mark.spec("C6", "S4")
def test_fixes_that_come_for_purged_days_keep_no_day_from_being_processed_again(home):
    reprocess(home, STREAM, T0.date(), AFTER)
    tidy = lambda: (run(home), clear_leftovers(home, home.root / "conf", today=TODAY))
    tidy()
    for at, day in ((-9 * 86_400, None), (0, None), ((DAYS - 1) * 86_400, LAST)):
        late = f"id,t,x,y\nlate,{round(T0.timestamp()) + at},1,1"
        bare_log(home.log("grid")).append(late.encode(), arrival_us=0)
        assert Archive(home, STREAM).batch()
        due = due_days(home, STREAM)
        assert (due and due.since) == day
        assert reprocess(home, STREAM, LAST, AFTER).began == LAST
        assert due_days(home, STREAM) is None
    take_due(home, STREAM)
    tidy()
    assert due_days(home, STREAM) is None
    assert reprocess(home, STREAM, LAST, AFTER).began == LAST


@pytest.mark.spec("C6", "S4")
def test_visits_of_days_that_are_kept_stay_and_older_ones_go(home, contracts):
    for name in ("visits", "differences"):
        file = contracts / f"{name}.odcs.yaml"
        file.write_text(file.read_text().replace("value: 400", f"value: {KEPT_DAYS}"))
    reprocess(home, STREAM, T0.date(), AFTER)
    before = visits_of(home)
    assert len(days_of(home.table("visits", "grid"))) == DAYS
    run(home)
    kept = [AFTER - timedelta(days=age) for age in range(KEPT_DAYS, 0, -1)]
    assert days_of(home.table("visits", "grid")) == kept
    after = visits_of(home)
    assert {day: after[day] for day in kept} == {day: before[day] for day in kept}


@pytest.mark.spec("C6")
def test_a_border_of_which_fixes_were_purged_is_not_begun_at(home):
    first = T0.date() + timedelta(days=1)
    reprocess(home, STREAM, T0.date(), first)
    run(home)
    with pytest.raises(FairwayError, match="no day border behind them is kept"):
        reprocess(home, STREAM, LAST, AFTER)


@pytest.mark.spec("C6")
def test_a_day_whose_changes_were_purged_is_processed_but_not_compared(home, contracts):
    file = contracts / "positions.odcs.yaml"
    file.write_text(
        file.read_text().replace(f"value: {KEPT_DAYS}, unit", "value: 9, unit")
    )
    first = T0.date() + timedelta(days=1)
    run(home)
    assert [day.compared for day in reprocess(home, STREAM, first, AFTER).days] == [
        False,
        *[False] * 3,
        True,
    ]


def visits_of(home: Home) -> dict[date, list]:
    rows = sql(home, "SELECT * FROM visits_grid ORDER BY ALL").to_pylist()
    return {
        day: [row for row in rows if row["event_date"] == day]
        for day in {row["event_date"] for row in rows}
    }


@pytest.mark.spec("C6", "S4")
def test_visits_of_days_that_are_wholly_kept_are_told_as_before_and_others_not_at_all(
    home,
):
    before = visits_of(home)
    run(home)
    since = first_told(home, "grid")
    kept = {day: rows for day, rows in before.items() if day >= since}
    assert visits_of(home) == kept
    # The snapshot that is left has fixes of midnight, so the next day is the first that is known wholly.
    assert since == (T0 + timedelta(days=DAYS - KEPT_DAYS + 1)).date()
    assert kept


@pytest.mark.spec("S4")
def test_members_of_queries_are_counted_as_before(home):
    counted = Tallies().look(home, "grid")
    run(home)
    after = Tallies().look(home, "grid")
    assert after.members == counted.members
    assert 0 < after.changes["left"] < counted.changes["left"]


def test_nothing_is_purged_when_nobody_wants_it_or_no_day_is_closed(home):
    rows = len(tables.read(home.table("positions", "grid")))
    run(home, purge=False)
    assert len(tables.read(home.table("positions", "grid"))) == rows
    (home.stream("grid") / STATUS_FILE).unlink()
    run(home)
    assert len(tables.read(home.table("positions", "grid"))) == rows


@pytest.mark.spec("C8")
def test_what_was_judged_lately_stays_whatever_the_day_that_was_judged(home):
    long_ago, judged = date(2008, 3, 9), datetime(2024, 5, 29, tzinfo=UTC)
    for day, at in (
        (long_ago, judged),
        (long_ago - timedelta(days=1), judged - timedelta(days=800)),
        (date(2024, 5, 28), judged - timedelta(days=800)),
    ):
        told = Finding(
            table="data/grid",
            rule="volume",
            severity="error",
            passed=True,
            observed=1.0,
            expected="as many as usual",
            rows=1,
        )
        checked_us = int(at.timestamp()) * 1_000_000
        record(home, day, [told], checked_us=checked_us)
    retained = run(home)["quality"].retained
    assert (retained.purged.files, retained.purged.rows) == (2, 2)
    assert tables.read(home.table("quality"))["date"].to_pylist() == [long_ago]
