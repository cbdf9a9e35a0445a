"""Dates before 1990 and beyond tomorrow: a question, asked in the same words by check, replay, try and a live feed."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.log.log import Log
from st_common.sources.reject_rate import RejectRate

pytestmark = pytest.mark.spec("B6")

ISO = """
[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
"""
IN_MS = ISO + 'time_unit = "ms"\n'
IN_S = ISO + 'time_unit = "s"\n'
HEADER = "id,t,lon,lat\n"
QUESTION = "dated before 1990 or beyond tomorrow"
NOW_US = 1_764_000_000_000_000


def lines(*times: str) -> str:
    rows = (f"a{at % 2},{text},24.{at}5,60.2\n" for at, text in enumerate(times))
    return HEADER + "".join(rows)


BOOT = lines(*(f"1970-01-01T00:00:{s:02}Z" for s in range(8)))
OF_1974 = lines(*(f"1974-06-0{d}T12:00:00Z" for d in range(1, 9)))
SECONDS = lines(*(str(1_764_000_000 + s) for s in range(8)))
COUNTED = lines(*(str(10 * s) for s in range(8)))
SOME = lines("1970-01-01T00:00:03Z", *(f"2025-11-24T08:00:{s:02}Z" for s in range(8)))
BEYOND = lines(*(f"2087-11-24T08:00:{s:02}Z" for s in range(8)))


class Trial:
    """A file, and the commands that read it."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        (self.home.root / "conf").mkdir(parents=True)
        self.file = root / "cars.csv"

    def replay(self, conf: str, text: str, *options: str):
        (self.home.root / "conf" / "streams.toml").write_text(conf)
        return self.of("replay", text, "cars", *options)

    def of(self, command: str, text: str, *args: str):
        self.file.write_text(text)
        before = (
            [command, str(self.file)]
            if command != "replay"
            else [command, args[0], str(self.file)]
        )
        more = args if command != "replay" else args[1:]
        home = [] if command == "try" else ["--home", str(self.home.root)]
        return CliRunner().invoke(app, [*home, *before, *more], prog_name="fairway")

    @property
    def segments(self) -> int:
        return Log(self.home.log("cars")).end()


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


@pytest.mark.parametrize(
    "text", [BOOT, OF_1974], ids=["clock that was never set", "archive"]
)
def test_check_replay_and_try_ask_about_dates_before_1990_in_the_same_words(
    trial: Trial, text: str
):
    found = [
        trial.of("check", text, "--write", "cars"),
        trial.replay(ISO, text),
        trial.of("try", text, "SELECT * FROM data INSIDE (20, 50, 30, 70)"),
    ]
    for one in found:
        assert one.exit_code == 2, one.output
        assert f"8 of 8 fixes are {QUESTION}, such as 19" in one.output
        assert 'max_jump_s = "off"' in one.output
    assert trial.segments == 0


def test_check_writes_no_settings_of_dates_that_are_a_question(trial: Trial):
    assert trial.of("check", BOOT, "--write", "cars").exit_code == 2
    assert not (trial.home.root / "conf" / "streams.toml").exists()


def test_settings_that_believe_every_clock_are_the_answer(trial: Trial):
    believing = ISO + 'max_jump_s = "off"\n'
    done = trial.replay(believing, OF_1974)
    assert (done.exit_code, QUESTION in done.output) == (0, False)
    assert "8 records" in done.output
    assert trial.of("check", OF_1974, "--stream", "cars").exit_code == 0
    asked = trial.of(
        "try", OF_1974, "SELECT * FROM data INSIDE (20, 50, 30, 70)", "--set", "max_jump_s=off"
    )  # fmt: skip
    assert asked.exit_code == 0, asked.output


def test_force_replays_what_is_a_question(trial: Trial):
    assert trial.replay(ISO, OF_1974, "--force").exit_code == 0
    assert trial.segments > 0


def test_seconds_that_are_read_as_milliseconds_are_named_with_their_unit(trial: Trial):
    refused = trial.replay(IN_MS, SECONDS)
    assert refused.exit_code == 2
    assert f"{QUESTION}, such as 1970-01-21T" in refused.output
    assert 'time_unit = "s" makes times of today' in refused.output
    assert trial.replay(IN_S, SECONDS).exit_code == 0


def test_a_clock_that_begins_at_0_is_told_and_read(trial: Trial):
    replayed = trial.replay(IN_S, COUNTED)
    assert replayed.exit_code == 0
    told = "times count from 1970-01-01T00:00:00Z, as a clock does that begins at 0"
    assert "warning" not in replayed.output
    checked = trial.of("check", COUNTED)
    assert checked.exit_code == 0
    assert f"note: {told}" in checked.output


def test_a_few_odd_dates_are_counted_by_check_and_by_replay(trial: Trial):
    told = f"1 of 9 fixes are {QUESTION}, such as 1970-01-01T00:00:03Z; where leaves them out"
    for one in (trial.of("check", SOME), trial.replay(ISO, SOME)):
        assert one.exit_code == 0, one.output
        assert told in one.output


def test_a_file_of_dates_beyond_tomorrow_is_refused(trial: Trial):
    for conf in (ISO, ISO + 'max_ahead_s = "off"\n'):
        refused = trial.replay(conf, BEYOND)
        assert refused.exit_code == 2, refused.output
        assert "too_far_ahead" in refused.output or QUESTION in refused.output
    assert trial.of("check", BEYOND).exit_code == 2


def test_no_word_is_said_of_times_of_today(trial: Trial):
    done = trial.replay(IN_S, SECONDS)
    assert "warning" not in done.output
    assert QUESTION not in trial.of("check", SECONDS).output


def test_a_feed_of_odd_dates_warns():
    table = {
        "format": "csv",
        "columns": {"object": "id", "event_ts": "t", "x": "lon", "y": "lat"},
    }
    judge = RejectRate(stream_of_table("cars", table, Path("streams.toml")), "harbour")
    judge.look(BOOT.encode(), arrival_us=NOW_US)
    assert f"source harbour: 8 of 8 fixes are {QUESTION}" in (
        judge.warning(now_us=NOW_US) or ""
    )
