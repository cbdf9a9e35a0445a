"""Rules on the data of a day: a home of four good Saturdays, and every bad Saturday that must be noticed."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from jobs.report_quality import main
from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import read_stream_contract
from st_common.errors import ContractError
from st_common.operations.alerts import read_alerts
from st_common.operations.status import StreamStatus, write_status
from st_common.quality.data_check import DataCheck, check_data
from st_common.quality.due import Due
from st_common.quality.finding import Finding
from st_common.quality.propose import _range
from st_common.quality.record import record
from st_common.quality.shape import day_start_us
from st_common.quality.tally import tally
from st_common.quality.usual import days_to_compare
from tests.kit.quality_days import (
    QUARTER_S,
    SETTINGS,
    Records,
    a_clock_an_hour_ahead,
    a_clock_an_hour_off,
    all_over_the_world,
    an_hour_lost,
    an_unknown_class,
    arrive,
    doubles,
    five_objects_left,
    five_objects_lost,
    impossible_speeds,
    midnight_s,
    mostly_lost,
    one_id_for_two,
)

pytestmark = [
    pytest.mark.spec("C8"),
    pytest.mark.filterwarnings(
        "default:::great_expectations"
    ),  # its own affair; ours stay errors
]

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2024, 3, 9)
NEXT = DAY + timedelta(weeks=1)
WEEKS = [DAY - timedelta(weeks=week) for week in (4, 3, 2, 1)]
ROUNDS, TAXIS = 96, 50
EXAMPLE = ROOT / "data_contracts" / "examples" / "streams" / "taxis.odcs.yaml"
CONTRACT = EXAMPLE.read_text()
BROKEN_VOLUME = Finding(
    table="data/taxis",
    rule="volume",
    severity="error",
    passed=False,
    observed=0.02,
    expected="as many as usual",
    rows=96,
)


def good(day: date) -> Records:
    """Each taxi goes back and forth in its street: a fix every 15 minutes, seconds apart from one taxi to the next."""
    turn, number = (each.ravel() for each in np.mgrid[0:ROUNDS, 0:TAXIS])
    at_s = midnight_s(day) + turn * QUARTER_S + number * 3
    return Records(
        taxi=np.array([f"t{each:02}" for each in number], object),
        at_s=at_s,
        told_s=at_s.copy(),
        x=np.round(-8.65 + number * 0.001 + turn % 4 * 0.002, 6),
        y=np.round(41.15 + number * 0.0005, 6),
        speed=20.0 + (turn + number) % 40,
        kind=np.array(["A", "B", "C"], object)[number % 3],
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with four good Saturdays."""
    home = Home(tmp_path_factory.mktemp("good"))
    for file, text in {
        "conf/streams.toml": SETTINGS,
        "data_contracts/streams/taxis.odcs.yaml": CONTRACT,
    }.items():
        (home.root / file).parent.mkdir(parents=True)
        (home.root / file).write_text(text)
    for day in WEEKS:
        arrive(home, good(day))
    return home


@pytest.fixture
def home(base: Home, tmp_path: Path) -> Home:
    """A copy of it, to which a day may come."""
    shutil.copytree(base.root, tmp_path / "home")
    return Home(tmp_path / "home")


def checked(home: Home, day: date = DAY) -> DataCheck:
    stream = load_streams(home.root / "conf")["taxis"]
    return check_data(home, stream, day, tally(home, stream, day))


def broken(data: DataCheck) -> dict[str, str]:
    """The rules on the data that do not hold, with what was found."""
    return {
        finding.rule: finding.details for finding in data.findings if not finding.passed
    }


BAD_DAYS: dict[str, tuple[Callable[[Records], Records], set[str], str]] = {
    "2 % of the volume": (
        mostly_lost,
        {"volume", "objects", "usual_objects", "decimals"},
        "96 of 4,800 fixes",
    ),
    "five of fifty objects lost": (five_objects_lost, {"usual_objects"}, '"t00"'),
    "five of fifty objects left": (
        five_objects_left,
        {"volume", "objects", "usual_objects"},
        "480 of 4,800 fixes",
    ),
    "an hour without data": (
        an_hour_lost,
        {"hours", "gap", "silence"},
        "14:00 to 15:00",
    ),
    "positions all over the world": (
        all_over_the_world,
        {"x_between", "y_between", "ways", "one_place"},
        '"x"',
    ),
    "speed -5 and 9,999": (impossible_speeds, {"speed_between"}, "9999.0"),
    "an unknown class": (an_unknown_class, {"class_is_known"}, '"class": "Z"'),
    "a clock one hour off": (a_clock_an_hour_off, {"clocks"}, "t07: 3"),
    "a clock one hour ahead": (a_clock_an_hour_ahead, {"readable"}, "96 too_far_ahead"),
    "one id for two vehicles": (
        one_id_for_two,
        {"ways", "one_place"},
        '"t01"',
    ),
    "30 % duplicates": (doubles, {"once"}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD_DAYS)
def test_a_bad_day_breaks_the_rules_that_are_about_it_and_no_other(
    home: Home, case: str
) -> None:
    spoil, rules, example = BAD_DAYS[case]
    arrive(home, spoil(good(DAY)))
    wrong = broken(checked(home))
    assert set(wrong) == rules
    assert example in "; ".join(wrong.values())


@pytest.mark.slow
def test_a_good_day_keeps_every_rule_and_10_000_unreadable_records_break_one(
    home: Home,
) -> None:
    records = good(DAY)
    morning = records.at_s % 86_400 < 43_200
    arrive(home, records.where(morning))
    arrive(home, records.where(~morning), others=b"what,is,this\n" * 10_000)
    data = checked(home)
    assert set(broken(data)) == {"readable"}
    assert "10,000 ragged" in broken(data)["readable"]
    volume = next(f for f in data.findings if f.rule == "volume")
    assert (volume.observed, volume.rows) == (1.0, TAXIS * ROUNDS)
    assert "the median of 4 Saturdays" in volume.expected
    assert not any(finding.is_grey for finding in data.findings)


@pytest.mark.slow
def test_the_job_judges_a_day_on_which_nothing_came_ends_with_3_and_alerts(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = load_streams(home.root / "conf")
    now_us = int(datetime(2024, 3, 10, 3, tzinfo=UTC).timestamp()) * 1_000_000
    assert Due(home, streams, now_us=now_us).unchecked_days()[-1] == DAY
    assert main(["--engine=local", "--home", str(home.root), "--day", str(DAY)]) == 3
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    page = Path(summary["days"][0]["path"]).read_text()
    assert "volume" in page
    assert "nothing to judge" in page
    index = Path(summary["days"][0]["path"]).with_name("index.html").read_text()
    assert f'href="{DAY}.html"' in index
    results = json.loads(
        Path(summary["days"][0]["path"]).with_suffix(".json").read_text()
    )
    judged = results["streams"]["taxis"]["great_expectations"]
    assert judged["statistics"]["unsuccessful_expectations"] == 7
    assert f"data_docs/taxis-{DAY}.html" in page
    docs = (Path(summary["days"][0]["path"]).parent / "data_docs").glob("*.html")
    (told,) = (each.read_text() for each in docs)
    assert "Expectation Suite" in told
    for rule in judged["results"]:
        assert rule["expectation_config"]["meta"]["rule"] in told
    assert loaded_from_elsewhere(told) == []
    (alert,) = read_alerts(home)
    assert (alert.stream, alert.level) == ("taxis", "error")
    rules = "frequency, volume, objects, usual_objects, hours, gap, fresh"
    assert f"{rules} broken; {DAY} has 0 fixes: does the feed" in alert.text
    assert f"taxis: {DAY} has 0 fixes: does" in summary["days"][0]["sentences"][0]
    assert f"{DAY} has 0 fixes: does the feed still deliver?" in page
    assert main(["--engine=local", "--home", str(home.root), "--day", str(DAY)]) == 3
    assert len(read_alerts(home)) == 1, "the same is told once"
    assert DAY not in Due(home, streams, now_us=now_us).unchecked_days()
    rows = tables.read(home.table("quality"), filters=[("rule", "=", "speed_between")])
    assert rows["observed"].to_pylist() == [None], "nothing to judge"
    assert rows["passed"].to_pylist() == [True]
    verdicts = tables.read(home.table("quality"), columns=["rule", "verdict"])
    told = dict(zip(*verdicts.to_pydict().values(), strict=True))
    assert told["speed_between"] == "grey"
    assert (told["volume"], told["attributes_are_as_promised"]) == ("broken", "kept")
    findings = results["streams"]["taxis"]["findings"]
    assert {each["rule"]: each["verdict"] for each in findings}["volume"] == "broken"


def test_a_bad_day_is_no_usual_day_until_it_has_lasted_for_eight_weeks(
    home: Home,
) -> None:
    record(home, DAY, [BROKEN_VOLUME], checked_us=1)
    arrive(home, mostly_lost(good(DAY)))
    arrive(home, mostly_lost(good(NEXT)))
    compared = checked(home, NEXT)
    volume = next(f for f in compared.findings if f.rule == "volume")
    assert "the median of 4 Saturdays" in volume.expected
    assert not volume.passed
    assert f"of {TAXIS * ROUNDS:,} fixes" in volume.details


def loaded_from_elsewhere(page: str) -> list[str]:
    """The tags of a page that a browser loads or runs something for."""
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
            given = dict(attrs)
            if tag in ("script", "link", "img", "iframe") or "src" in given:
                tags.append(self.get_starttag_text() or tag)

    Tags().feed(page)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    assert page.index(policy) < page.index("<style"), "it holds for all that follows"
    return tags


@pytest.mark.parametrize(
    ("days", "bad", "expected"),
    [
        ([-56, -35, -28, -21, -14, -7, -1], [], [-28, -21, -14, -7]),
        ([-56, -35, -28, -21, -14, -7, -1], [-14], [-35, -28, -21, -7]),
        ([-28, -21, -14, -7, -2, -1], [-14, -1], [-28, -21, -7]),
        ([-14, -7, -6, -1], [], [-14, -7]),
        ([-63, -3, -2, -1], [], [-63]),
        ([-63, -14, -7], [-14, -7], [-7]),
        ([-63, 0, 1], [], [-63]),
        ([-2, -1, 0, 7], [], []),
    ],
)
def test_the_days_that_say_what_is_usual(days, bad, expected) -> None:
    assert days_to_compare(at(DAY, days), DAY, at(DAY, bad)) == at(DAY, expected)


def at(day: date, offsets: list[int]) -> list[date]:
    return [day + timedelta(days=each) for each in offsets]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ([-21, -14, -7, -1], [-21, -14, -7]),
        ([-14, -7, -4, -3, -2, -1], [-14, -7, -4, -1]),
        ([-3, -2], []),
    ],
)
def test_a_working_day_is_compared_with_others_until_there_are_three_of_its_weekday(
    days, expected
) -> None:
    tuesday = date(2024, 3, 12)
    assert days_to_compare(at(tuesday, days), tuesday) == at(tuesday, expected)


@pytest.mark.slow
def test_a_proposed_contract_is_kept_by_the_days_it_comes_from_and_not_by_bad_ones(
    home: Home,
) -> None:
    path = home.root / "data_contracts" / "streams" / "taxis.odcs.yaml"
    cli = CliRunner()
    refused = cli.invoke(app, ["--home", str(home.root), "quality", "propose", "taxis"])
    assert (refused.exit_code, path.read_text()) == (2, CONTRACT)
    path.unlink()
    done = cli.invoke(app, ["--home", str(home.root), "quality", "propose", "taxis"])
    assert done.exit_code == 0, done.output
    arrive(home, good(DAY))
    assert broken(checked(home)) == {}
    assert {finding.rule for finding in checked(home).findings} >= {
        "speed_between",
        "class_is_known",
        "clocks",
        "x_between",
    }
    spoilt = an_unknown_class(impossible_speeds(an_hour_lost(good(NEXT))))
    arrive(home, one_id_for_two(spoilt))
    assert set(broken(checked(home, NEXT))) == {
        "class_is_known",
        "gap",
        "hours",
        "one_place",
        "silence",
        "speed_between",
        "ways",
        "x_between",
    }


@pytest.mark.parametrize(
    "values", [[1_539_059_572.0, 1_539_059_672.0], [0.0, 0.003], [-4.0, 9e9], [7.0]]
)
def test_a_proposed_range_holds_the_values_that_it_comes_from(values) -> None:
    bounds = _range(pa.chunked_array([values]))["logicalTypeOptions"]
    assert bounds["minimum"] <= min(values)
    assert max(values) <= bounds["maximum"]


def test_an_open_day_widens_no_bound_of_a_proposed_contract(home: Home) -> None:
    path = home.root / "data_contracts" / "streams" / "taxis.odcs.yaml"
    clock_us = day_start_us(DAY)
    status = StreamStatus(
        state="running", beat_ts=1, position=0, end_position=0, now_ts=clock_us
    )
    write_status(home.stream("taxis"), status)
    proposed = []
    for _ in range(2):
        command = ["--home", str(home.root), "quality", "propose", "taxis", "--replace"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        proposed.append(path.read_text())
        day = good(DAY)
        arrive(home, day.where(day.at_s * 1_000_000 < clock_us + 3_600_000_000))
    assert proposed[0] == proposed[1]


WRONG = {
    "measure: fixes_to_usual": ("measure: fixes_to_usua", "did you mean 'fixes_to_usual'"),
    "jumps_share, max_speed_mps: 50": ("jumps_share, at_most_share: 1", "no argument of jumps_share"),
    "mustBeBetween: [0.5, 2]": ("mustBeBetween: [2, 0.5]", "mustBeBetween = [2, 0.5]"),
    "metric: nullValues": ("metric: nullValue", "did you mean 'nullValues'"),
    "minimum: 0, maximum: 200": ("minimum: 0, maximum: fast", "bounds no number"),
    "value: 1, unit: d": ("value: 1, unit: w", "unknown-promise"),
    "name: hours": ("name: volume", "'volume' is there twice"),
    "engine: fairway": ("engine: other", "engine fairway"),
    "physicalType: string": ("physicalType: text", "unknown-type"),
    "unit: percent, ": ("", "needs unit: percent"),
    "measure: level_to_usual": ("measure: fixes_to_usual", "is no measure"),
    "type: custom, engine: fairway": ("type: sql, engine: fairway", "type custom"),
    "metric: invalidValues, arguments: {validValues: [A, B, C]}": (
        "type: custom, engine: fairway, implementation: {measure: level_to_usual}",
        "class is no number",
    ),
    "value: 1, unit: d}": (
        "value: 1, unit: d, scheduler: weekdays, schedule: Mon Sun Day}",
        "'Mon Sun Day' is not known",
    ),
    "{property: frequency, value: 1, unit: d}": (
        "{property: frequency, value: 1, unit: d, schedule: Mon}",
        "scheduler None",
    ),
}  # fmt: skip


@pytest.mark.parametrize("right", WRONG)
def test_what_is_wrong_in_a_contract_is_named_with_its_line(
    tmp_path: Path, right: str
) -> None:
    wrong, said = WRONG[right]
    path = tmp_path / "taxis.odcs.yaml"
    path.write_text(CONTRACT.replace(right, wrong, 1))
    with pytest.raises(ContractError) as error:
        read_stream_contract(path, "taxis")
    assert said in str(error.value)
    assert str(error.value).startswith(f"{path}:")


def test_a_contract_that_cannot_be_read_and_undeclared_attributes_are_breaches(
    base: Home, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    shutil.copytree(base.root / "conf", tmp_path / "conf")
    path = tmp_path / "data_contracts" / "streams" / "taxis.odcs.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(CONTRACT.replace("value: km/h", "value: kn"))
    (attributes, *_) = checked(home).findings
    assert attributes.details == "speed is double km/h and not double kn"
    assert attributes.sentence == f"settings and contract differ: {attributes.details}"
    path.write_text("name: 1")
    (only,) = checked(home).findings
    assert only.is_breach
    assert "missing-key" in only.details
    assert only.sentence.startswith("no rule on its data could be tried: ")
    assert "missing-key" in only.sentence
