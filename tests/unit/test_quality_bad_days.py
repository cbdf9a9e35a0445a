"""A contract proposed from a town's days: a month of usual ones keeps it, and each bad day breaks it and is told."""

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from html import unescape
from pathlib import Path

import pytest

from jobs.report_quality import main
from st_common import tables
from st_common.config.environment import OUTCOME_VARIABLE
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.contracts import StreamContract, load_stream_contract
from st_common.operations.alerts import read_alerts
from st_common.operations.status import StreamStatus, write_status
from st_common.quality.data_check import DataCheck, check_data
from st_common.quality.due import Due
from st_common.quality.propose import propose
from st_common.quality.record import record
from st_common.quality.shape import day_start_us
from st_common.quality.tally import tally
from tests.kit import quality_days as town
from tests.kit.quality_days import Records, arrive, town_day

pytestmark = [
    pytest.mark.spec("C8", "S10"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("default:::great_expectations"),
    pytest.mark.xdist_group("bad days"),  # the usual ones take half a minute to make
]

FIRST, MONTH, BAD = date(2024, 1, 29), date(2024, 3, 1), date(2024, 4, 2)
NIGHT_US = day_start_us(BAD + timedelta(days=1)) + 3 * 3_600_000_000


def days(first: date, end: date) -> list[date]:
    return [first + timedelta(days=each) for each in range((end - first).days)]


def new_home(root: Path) -> Home:
    (root / "conf").mkdir(parents=True)
    (root / "conf" / "streams.toml").write_text(town.SETTINGS)
    return Home(root)


def pass_midnight(home: Home, day: date) -> None:
    """The stream's clock comes to the beginning of a day."""
    status = StreamStatus(
        state="running",
        beat_ts=1,
        position=0,
        end_position=0,
        now_ts=day_start_us(day),
    )
    write_status(home.stream("taxis"), status)


def taxis(home: Home) -> StreamSettings:
    return load_streams(home.root / "conf")["taxis"]


def proposed(home: Home) -> StreamContract:
    propose(home, taxis(home), replace=True)
    contract = load_stream_contract("taxis", home.root)
    assert contract is not None
    return contract


def checked(home: Home, day: date) -> DataCheck:
    """Judges a day, and stores what came of it, as a report does."""
    stream = taxis(home)
    data = check_data(home, stream, day, tally(home, stream, day))
    record(home, day, data.findings, checked_us=1)
    return data


def broken(data: DataCheck) -> dict[str, str]:
    return {one.rule: one.sentence for one in data.findings if not one.passed}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with nine weeks of usual days, and a contract that was proposed before the last month."""
    home = new_home(tmp_path_factory.mktemp("town"))
    arrive(home, *map(town_day, days(FIRST, MONTH)))
    pass_midnight(home, MONTH)
    proposed(home)
    arrive(home, *map(town_day, days(MONTH, BAD)))
    pass_midnight(home, BAD)
    return home


@pytest.fixture
def home(base: Home, tmp_path: Path) -> Home:
    """A copy of it, to which a day may come."""
    shutil.copytree(base.root, tmp_path / "home")
    return Home(tmp_path / "home")


def test_31_usual_days_one_of_them_a_holiday_keep_every_rule(home: Home) -> None:
    said = {}
    for day in days(MONTH, MONTH + timedelta(days=31)):
        data = checked(home, day)
        assert broken(data) == {}, day
        assert not [one.rule for one in data.findings if one.is_grey], day
        said[day] = next(one for one in data.findings if one.rule == "volume").expected
    assert "the median of 4 Tuesdays" in said[date(2024, 3, 12)]
    assert "Sundays, for it is as one of these: a holiday?" in said[town.HOLIDAY]


BAD_DAYS: dict[str, tuple[Callable[[Records], Records] | None, str, str]] = {
    "2 % of the volume": (
        town.mostly_lost,
        "volume",
        "fixes of {day} are 0.02 times those of a usual Tuesday: is a part missing",
    ),
    "five objects lost": (
        town.five_objects_lost,
        "usual_objects",
        "of the objects of a usual Tuesday were not seen on {day} (t00, t01, t02)",
    ),
    "five objects left": (town.five_objects_left, "objects", "{day} are 0.11 times"),
    "an hour without data": (
        town.an_hour_lost,
        "hours",
        "{day} has no fixes for 1 h that usually have some (14:00 to 15:00)",
    ),
    "positions all over the world": (
        town.all_over_the_world,
        "x_between",
        "100% of the values of x on {day} lie outside",
    ),
    "speed -5 and 9,999": (
        town.impossible_speeds,
        "speed_between",
        "of the values of speed on {day} lie outside",
    ),
    "an unknown class": (
        town.an_unknown_class,
        "class_is_known",
        "of the values of class on {day} are none of those known",
    ),
    "a clock one hour off": (
        town.a_clock_an_hour_off,
        "clocks",
        "differ from their arrival (t07: 3",
    ),
    "a clock one hour ahead": (
        town.a_clock_an_hour_ahead,
        "readable",
        "of the records of {day} cannot be read (74 too_far_ahead)",
    ),
    "one id for two vehicles": (
        town.one_id_for_two,
        "one_place",
        "jump back and forth (t01): does one id stand for two?",
    ),
    "30 % duplicates": (town.doubles, "once", "23% of the fixes of {day} repeat"),
    "speed in m/s": (
        town.metres_per_second,
        "speed_level",
        "speed of {day} is 0.28 of a usual Tuesday: was a unit changed?",
    ),
    "one taxi frozen": (
        town.one_frozen,
        "frozen_objects",
        "of the objects that usually move stood still all day on {day} (t08)",
    ),
    "all frozen from three": (
        town.all_frozen_from_three,
        "movement",
        "nobody moved for 8 h of {day} though objects reported (16:00 to 17:00, ",
    ),
    "delivered again under new ids": (
        town.delivered_under_new_ids,
        "own_tracks",
        "100% of the objects of {day} have another one's track",
    ),
    "two decimals": (
        town.two_decimals,
        "decimals",
        "100% of the coordinates of {day} have fewer decimals than usual",
    ),
    "nothing came": (None, "frequency", "{day} has 0 fixes: does the feed"),
}


@pytest.mark.parametrize("case", BAD_DAYS)
def test_a_bad_day_is_told_by_the_report_an_alert_and_the_state_of_the_task(
    home: Home,
    case: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoil, rule, sentence = BAD_DAYS[case]
    told = sentence.format(day=BAD)
    if spoil is not None:
        arrive(home, spoil(town_day(BAD)))
    due = Due(home, load_streams(home.root / "conf"), now_us=NIGHT_US)
    assert due.unchecked_days()[-1] == BAD
    outcome = home.root / "outcome.json"
    monkeypatch.setenv(OUTCOME_VARIABLE, str(outcome))
    assert main(["--engine=local", "--home", str(home.root), "--day", str(BAD)]) == 3
    ended = json.loads(outcome.read_text())
    assert ended["code"] == 3, "a task of Airflow is red for good by it"
    assert told in ended["error"], "and says so, as does the note of its run"
    (day,) = json.loads(capsys.readouterr().out.splitlines()[-1])["days"]
    assert any(told in each for each in day["sentences"])
    rows = tables.read(home.table("quality"), filters=[("rule", "=", rule)]).to_pylist()
    (row,) = [each for each in rows if each["table"] == "data/taxis"]
    assert (row["severity"], row["verdict"]) == ("error", "broken")
    assert told in row["sentence"]
    (alert,) = read_alerts(home)
    assert (alert.stream, alert.level) == ("taxis", "error")
    assert told in alert.text
    page = Path(day["path"])
    assert told in unescape(page.read_text())
    results = json.loads(page.with_suffix(".json").read_text())
    findings = results["streams"]["taxis"]["findings"]
    assert row["sentence"] in [each["sentence"] for each in findings]


def test_taxis_that_rest_at_one_place_as_they_do_are_no_fault(tmp_path: Path) -> None:
    home = new_home(tmp_path)
    arrive(home, *(town_day(day, yard=0) for day in days(FIRST, MONTH)))
    rules = {rule.name: rule.maximum for rule in proposed(home).rules}
    assert rules["frozen_objects"] is not None
    for day in days(MONTH - timedelta(days=7), MONTH):
        assert "frozen_objects" not in broken(checked(home, day)), day


def two_hours(day: date) -> Records:
    records = town_day(day)
    return records.where(records.at_s % 86_400 // 7200 == 4)


def weekday_home(tmp_path: Path) -> Home:
    """Three weeks of a stream that never runs on Sundays, and a Monday on which nothing came."""
    home = new_home(tmp_path)
    end = FIRST + timedelta(weeks=3)
    arrive(home, *(two_hours(day) for day in days(FIRST, end) if day.weekday() != 6))
    pass_midnight(home, end)
    return home


def test_a_stream_that_never_runs_on_sundays_is_not_missed_on_them(
    tmp_path: Path,
) -> None:
    home = weekday_home(tmp_path)
    assert proposed(home).weekdays == frozenset(range(6))
    streams = load_streams(home.root / "conf")
    sunday, monday = FIRST + timedelta(days=20), FIRST + timedelta(days=21)
    due = Due(home, streams, now_us=day_start_us(monday + timedelta(days=1)))
    assert sunday not in due.unchecked_days()
    assert due.unchecked_days()[-1] == monday
    assert not due.is_due("taxis", monday + timedelta(days=1))
    data = checked(home, sunday)
    assert broken(data) == {}
    volume = next(one for one in data.findings if one.rule == "volume")
    assert volume.details == "nothing is promised of Sundays, and nothing came"
    assert "frequency" in broken(checked(home, monday))


def test_a_day_that_is_missing_from_a_replayed_file_is_due_and_none_after_its_end(
    tmp_path: Path,
) -> None:
    home = new_home(tmp_path)
    missing, end = date(2024, 2, 1), FIRST + timedelta(weeks=4)
    there = [day for day in days(FIRST, end) if day != missing]
    # The file of last year: it arrives a year later, day after day.
    arrive(home, *map(two_hours, there), later_s=366 * 86_400)
    pass_midnight(home, end)
    contract = proposed(home)
    assert contract.is_promised(missing)
    assert "clocks" not in [rule.name for rule in contract.rules]
    streams = load_streams(home.root / "conf")
    due = Due(home, streams, now_us=day_start_us(date(2025, 3, 1)))
    assert due.unchecked_days() == sorted([*there, missing])
    assert "frequency" in broken(checked(home, missing))
