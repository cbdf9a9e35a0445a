"""What jobs take: declared once, and read alike by whoever asks."""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.parameters import Parameter, Program
from st_common.config.values import TIME_PATTERN, day, instant, matching, number, one_of
from st_common.errors import ConfigError
from st_common.processes.entry import job_parser
from st_common.programs import JOBS, LOAD_LAYER, MAINTAIN, PARTITION, REPROCESS

SHARE = Parameter("share", number(above=0, most=1), "of the data")
DAY = Parameter("day", day, "a closed day")
TIME = Parameter("from", instant, "the beginning")
CRS = Parameter("crs", matching("EPSG:[0-9]+"), "of the file")
ENGINE = Parameter("engine", one_of("spark", "local"), "who", default="spark")


def test_there_are_six_jobs_and_each_has_a_file():
    assert len(JOBS) == 6
    for job in JOBS:
        module = __import__(f"jobs.{job.name}", fromlist=["main"])
        assert callable(module.main)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_each_job_says_what_it_takes(job, capsys):
    with pytest.raises(SystemExit) as ended:
        job_parser(job).parse_args(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    for one in job.parameters:
        assert one.is_word or one.option in said
        assert " ".join(one.text.split()) in said
        assert one.text[0].islower() or one.text.startswith("`")


@pytest.mark.parametrize(
    ("parameter", "text", "takes"),
    [
        (SHARE, "0", "a number, above 0, at most 1"),
        (SHARE, "nan", "a number, above 0, at most 1"),
        (SHARE, "half", "a number, above 0, at most 1"),
        (DAY, "2024-02-30", "a day such as 2024-01-31"),
        (TIME, "noon", TIME.takes),
        (TIME, "0001-01-01T00:00+02:00", TIME.takes),
        (CRS, "EPSG:1 --home", "a text"),
        (ENGINE, "flink", "one of spark, local"),
        (PARTITION["group"], "--home", "a name such as parks"),
        (PARTITION["regions"], "1e3", "a whole number, at least 1, at most 10000"),
    ],
)
def test_what_is_no_value_is_refused_with_what_it_may_be(parameter, text, takes):
    with pytest.raises(ConfigError) as refused:
        parameter.read(text)
    assert str(refused.value) == f"{parameter.name} is {text!r} ({takes})"


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2024-05-01", 0),
        ("2024-05-01T10:00Z", 10),
        ("2024-05-01T12:00:00.000+02:00", 10),
        ("2024-04-30T20:30-05:30", 2),
    ],
)
def test_a_time_is_a_day_or_says_its_zone(text, hour):
    assert TIME.read(text) == datetime(2024, 5, 1, hour, tzinfo=UTC)
    assert re.fullmatch(TIME_PATTERN, text)


def test_a_time_without_its_zone_is_refused_with_what_to_write():
    assert not re.fullmatch(TIME_PATTERN, "2024-05-01T10:00")
    with pytest.raises(ConfigError) as refused:
        TIME.read("2024-05-01T10:00")
    assert str(refused.value) == (
        "from is '2024-05-01T10:00', a time without its zone"
        " (2024-05-01T10:00Z for UTC, or another zone, as 2024-05-01T10:00+02:00)"
    )


def test_a_wrong_command_line_is_told_in_one_line(capsys):
    for words in (["--regions=0"], ["--unknown"], ["a", "b"], ["--share", "2"]):
        with pytest.raises(SystemExit) as ended:
            job_parser(PARTITION).parse_args(words)
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.startswith("error: ")
        assert said.count("\n") == 1


def test_what_is_left_empty_is_the_default():
    empty = ["", "--share=", "--first=", "--regions=", "--source=", "--strategy="]
    given = vars(job_parser(PARTITION).parse_args(empty))
    assert given == vars(job_parser(PARTITION).parse_args([]))
    assert (given["group"], given["first"], given["share"]) == ("default", 10_000, None)


def test_words_may_stand_between_options():
    parsed = job_parser(LOAD_LAYER).parse_args(["parks", "--group=g", "a b.geojson"])
    assert (parsed.layer, str(parsed.file), parsed.group) == (
        "parks",
        "a b.geojson",
        "g",
    )


def test_a_flag_that_is_set_is_taken_back_and_a_keyword_of_python_is_a_name():
    parser = job_parser(MAINTAIN)
    assert parser.parse_args([]).purge is True
    assert parser.parse_args(["--no-purge"]).purge is False
    days = ["--from", "2024-05-01", "--to", "2024-05-02"]
    assert job_parser(REPROCESS).parse_args(days).from_.day == 1


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_number_is_read_where_it_lies_within_its_bounds(value):
    text = repr(value)
    if 0 < value <= 1:
        assert SHARE.read(text) == value
    else:
        with pytest.raises(ConfigError):
            SHARE.read(text)


@given(st.text())
def test_no_text_becomes_anything_else_than_its_value_or_an_error(text):
    program = Program("load_layer", "", (CRS, DAY, TIME, SHARE))
    for one in program.parameters:
        with suppress(ConfigError):
            value = one.read(text)
            assert value is None or one is not SHARE or math.isfinite(value)
            assert (value is None) == (not text)
