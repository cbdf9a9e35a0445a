"""Whole numbers of any length, wherever people write one: each is read, or refused in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.written import whole_number

DIGITS = "1" * 5000
"""More than Python makes a number of."""
STREAM = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { n = "long" }
time_unit = "s"
"""


@given(st.integers(0, 1 << 70), st.integers(0, 1 << 70), st.integers(0, 9))
def test_a_number_is_what_it_says_up_to_the_most(number, most, zeros):
    text = "0" * zeros + str(number)
    assert whole_number(text, most) == (number if number <= most else None)


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", "1_0", " 1", "1.0", "²", "٣", "1e3", "0x1", DIGITS],
    ids=range(11),
)
def test_what_is_no_number_is_none(text):
    assert whole_number(text, 1 << 63) is None


def test_zeros_may_stand_in_front_however_many():
    assert whole_number("0" * 5000 + "7", 9) == 7
    assert whole_number("0" * 5000, 9) == 0


def told(tmp_path, settings, *words):
    """What a command says to people; its exit code says that what it was given is wrong."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (tmp_path / "home").mkdir()
    (conf / "streams.toml").write_text(settings)
    places = ["--home", str(tmp_path / "home"), "--conf", str(conf)]
    done = CliRunner().invoke(app, [*words, *places])
    assert done.exit_code == 2, done.output
    assert "--debug" not in done.output
    return done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT * FROM s WHERE H3_CELL({DIGITS}) = 'a'", "expected a resolution"),
        (f"SELECT * FROM s a JOIN s b ON NEAREST (a, b, {DIGITS})", "NEAREST is of"),
        (f"SELECT * FROM s WHERE n > {DIGITS}", "the number is too large"),
    ],
    ids=["h3", "nearest", "condition"],
)
def test_queries_with_endless_numbers_are_refused_in_words(tmp_path, text, message):
    assert message in told(tmp_path, STREAM, "query", "check", "--text", text)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (f"max_ahead_s = {DIGITS}", "cannot be read"),
        (f"where = 'n > {DIGITS}'", "too large"),
        (f"crs = 'EPSG:{DIGITS}'", 'must be "EPSG:" and a number'),
        (f"max_ahead_s = {'[' * 5000}", "cannot be read"),
        (f"sources.a = {{ kind = 'tcp', connect = 'h:{DIGITS}' }}", "HOST:PORT"),
    ],
    ids=["number", "where", "crs", "depth", "port"],
)
def test_settings_with_endless_numbers_are_refused_in_words(tmp_path, setting, message):
    assert message in told(tmp_path, STREAM + setting, "streams", "list")
