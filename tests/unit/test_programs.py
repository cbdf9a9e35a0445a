"""What jobs take: declared once, and read alike by whoever asks."""

import math
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.cli.arguments import as_command, taking
from st_common.cli.frame import SHARED, FairwayCommand, FairwayGroup
from st_common.config.parameters import Parameter, Program
from st_common.config.values import TIME_PATTERN, day, instant, matching, number, one_of
from st_common.errors import ConfigError
from st_common.processes.entry import job_parser
from st_common.programs import (
    BACKTEST,
    DELIVER,
    JOBS,
    JOIN_LAYER,
    LOAD_LAYER,
    MAINTAIN,
    PARTITION,
    REPORT_QUALITY,
    REPORT_STREAMS,
    REPROCESS,
    RUN_STREAM,
    SUPERVISE,
)
from st_common.server.endpoints import ENDPOINTS
from st_common.server.openapi import description
from st_common.server.parameters import ANY_TEXT, Parameters
from st_common.server.reads import BACKTEST_KEYS

SHARE = Parameter("share", number(above=0, most=1), "of the data")
DAY = Parameter("day", day, "a closed day")
TIME = Parameter("from", instant, "the beginning")
CRS = Parameter("crs", matching("EPSG:[0-9]+"), "of the file")
ENGINE = Parameter("engine", one_of("spark", "local"), "who", default="spark")

COMMANDS = {
    "layer load": LOAD_LAYER,
    "partition": PARTITION,
    "maintain": MAINTAIN,
    "reprocess": REPROCESS,
    "quality report": REPORT_QUALITY,
    "run": RUN_STREAM,
    "supervise": SUPERVISE,
    "deliver": DELIVER,
    "streams report": REPORT_STREAMS,
    "layer join": JOIN_LAYER,
    "backtest": BACKTEST,
}
OF_COMMANDS_ALONE = {
    "layer load": {"all_faults": "a terminal is told of ten faults, a job of all"},
    "reprocess": {
        "queries": "a trial is of what somebody has just written",
        "layers": "as queries",
        "into": "as queries",
    },
    "streams report": {"page": "a job writes pages where the page of a home is found"},
    "layer join": {
        "form": "rows are shown, and there is no job",
        "json_lines": "as form",
        "out": "as form",
    },
    "backtest": {
        "file": "it has the statements that a body of HTTP has",
        "report": "as form",
        "form": "rows are shown, and there is no job",
        "json_lines": "as form",
    },
}
"""What commands take and jobs do not, and why."""


def command_of(words):
    command = typer.main.get_command(app)
    for word in words.split():
        command = command.commands[word]
    return command


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_takes_what_its_task_takes_and_says_the_same_of_it(words):
    shown = {one.name: one for one in command_of(words).params}
    for one in map(as_command, COMMANDS[words].parameters):
        param = shown.pop(one.identifier)
        assert param.help == one.sentence
        assert param.required == one.is_required
        assert param.default == (
            bool(one.default) if one.is_flag else one.shown_default or None
        )
        assert param.opts == [one.identifier if one.is_word else f"--{one.name}"]
        assert one.is_flag or param.metavar in (one.metavar, one.name.upper())
    alone = {*shown} - {*SHARED, "help"}
    assert alone == {*OF_COMMANDS_ALONE.get(words, ())}


def test_a_command_differs_from_its_job_in_its_engine_alone():
    parameters = [one for task in COMMANDS.values() for one in task.parameters]
    differ = {one.name for one in parameters if as_command(one) != one}
    assert differ == {"engine"}


NOT_BY_HTTP = {
    "cores": "a server says itself what one request may take",
    "engine": "as cores",
}
"""What HTTP leaves out of a task, and why."""
OTHERWISE_BY_HTTP = {
    "stream": {"is_required": False},  # the statements name it
    "against": {"type": ANY_TEXT},  # a server reads no files of who asks
}


def test_http_takes_what_its_task_takes_and_says_the_same_of_it():
    (endpoint,) = (one for one in ENDPOINTS if one.path == "/v1/backtest")
    shown = {one.name: one for one in (*endpoint.params, *endpoint.keys)}
    for one in BACKTEST.parameters:
        if one.name not in NOT_BY_HTTP:
            wanted = replace(one, **OTHERWISE_BY_HTTP.get(one.name, {}))
            assert shown.pop(one.name) == wanted
    assert {*shown} == {"arrow"}, "a client in Python takes its tables so"
    made = description("1", [endpoint])["paths"]["/v1/backtest"]["post"]
    (days,) = made["parameters"]
    assert days["description"] == BACKTEST["days"].sentence
    assert days["schema"] == {**BACKTEST["days"].type.schema, "default": 30}
    body = made["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert body["against"]["description"] == BACKTEST["against"].sentence


def test_a_body_with_a_key_that_is_unknown_or_wrong_is_refused():
    asked = Parameters(
        place=None,
        path={},
        params={},
        media="application/json",
        body=b'{"text": "q", "stream": "cars", "against": null}',
    )
    assert asked.values(BACKTEST_KEYS) == {"stream": "cars"}
    assert replace(asked, media="text/plain").values(BACKTEST_KEYS) == {}
    for body, said in (
        (b'{"text": "q", "strem": "cars"}', "the body: unknown key 'strem'"),
        (b'{"stream": 5}', "the body: stream = 5 must be a name"),
        (b'{"arrow": "yes"}', "the body: arrow = 'yes' must be true or false"),
    ):
        with pytest.raises(ConfigError) as refused:
            replace(asked, body=body).values(BACKTEST_KEYS)
        assert said in str(refused.value)


WORDS = {
    "a number": st.sampled_from(["0", "0.5", "1", "-1", "nan", "half", ""]),
    "a whole": st.sampled_from(["0", "1", "40", "1.5", "many", "-3", ""]),
    "one of": st.sampled_from(["spark", "local", "rows", "sample", "flink", ""]),
    "a day": st.sampled_from(["2024-05-01", "2024-02-30", "2024-05-01T10:00", "noon"]),
}
TEXTS = st.sampled_from(["parks", "a,b", "EPSG:3857", "planar", "No Name", "a b", ""])


@st.composite
def lines(draw):
    """A task, and a line of words that give some of what it takes: right, wrong or left empty."""
    program = draw(st.sampled_from([*COMMANDS.values()]))
    words = []
    for one in program.parameters:
        if not (one.is_required or draw(st.booleans())):
            continue
        kind = next((key for key in WORDS if one.takes.startswith(key)), "")
        text = draw(WORDS.get(kind, TEXTS))
        if one.is_flag:
            words.append(one.option)
        elif one.is_word:
            words.append(text or "x")
        else:
            words.append(f"--{one.name}={text}")
    return program, words


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=lines())
def test_a_job_and_its_command_read_the_same_line_alike(capsys, line):
    program, words = line
    read = []
    small = typer.Typer(cls=FairwayGroup)
    small.callback()(lambda: None)

    @small.command("do", cls=FairwayCommand)
    @taking(program)
    def do(ctx: typer.Context, given):
        read.append(given)

    done = CliRunner().invoke(small, ["do", *words])
    taken = tuple(map(as_command, program.parameters))
    try:
        wanted = job_parser(replace(program, parameters=taken)).parse_args(words)
    except SystemExit:
        wanted = None
    if wanted is None:
        said = capsys.readouterr().err.partition(" (python -m")[0]
        assert (done.exit_code, read) == (2, [])
        assert said in done.stderr or "required" in said
        return
    assert done.exit_code == 0, done.output
    assert vars(read[0]) == vars(wanted)


def test_there_are_six_jobs_and_each_has_a_file():
    assert len(JOBS) == 6
    for job in JOBS:
        module = __import__(f"jobs.{job.name}", fromlist=["main"])
        assert callable(module.main)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_each_job_says_what_it_takes(job, capsys):
    with pytest.raises(SystemExit) as ended:
        job_parser(job).parse_args(["--help"])
    said = "".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    for one in job.parameters:
        assert one.is_word or one.option in said
        assert "".join(one.sentence.split()) in said
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
