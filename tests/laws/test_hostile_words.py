"""Whatever stands on the command line: an exit code that is known, one line of error, no traceback."""

import shutil
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.effort import tries

CONF = """
[streams.s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { speed = "double km/h", name = "string" }
time_unit = "s"
max_ahead_s = "off"

[streams.p]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
"""
FIXES = "id,t,x,y,speed,name\na,1700000000,0.5,0.5,3,x\nb,1700000001,5,5,4,y\na,1700000005,5,5,3,x\nc,z,1,1,1,1\n"
SQUARE = "[[[0,0],[1,0],[1,1],[0,1],[0,0]]]"
ZONE = f'{{"type":"Feature","id":"z","properties":{{}},"geometry":{{"type":"Polygon","coordinates":{SQUARE}}}}}'
QUERY = "SELECT * FROM s INSIDE (0, 0, 1, 1)"
FILES = {
    "f.csv": FIXES.encode(),
    "z.geojson": ZONE.encode(),
    "q.sql": f"REGISTER QUERY q AS {QUERY}".encode(),
    "empty": b"",
    "bytes": bytes(range(256)) * 9,
}
WORDS = (
    *("", " ", "-", "--", "-1", "0", "1", "1e999", "nan", "inf", "-inf", "9" * 40),
    *("-" + "9" * 40, "0.5", "1e-320", "0001-01-01", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59Z", "9999-12-31", "10000-01-01", "2023-11-14", "2023-02-30"),
    *("2023-11-14T22:13:21", "a\0b", "a\nb", "a\x1b[2J", "é☃", "\udcff", "..", "/"),
    *("dir", "missing.csv", "a" * 5000, "%s", "'; DROP", "$(x)", "stream:s", "layer:z"),
    *("EPSG:99999999", "EPSG:4326", "None", "[]", "{}", "a,b,,", "stream:none", "z"),
    *("http://127.0.0.1:1", QUERY, "REGISTER QUERY x AS SELECT", "DROP QUERY none"),
    *("sample:ships", "sample:none", "a=b", "=", "s=", "=s", "1:2", "UTC", "*", "~"),
    *("table", "json", "jsonl", "1,2,3,4", "nan,nan,nan,nan", "POINT(1 1)", "s", "q"),
    *("p", "zones", "default", *FILES),
)
USUAL = {
    "stream": ("s", "p"),
    "query": ("q",),
    "file": tuple(FILES),
    "layer": ("zones",),
    "name": ("zones", "new"),
    "group": ("default",),
    "text": (QUERY,),
}
STAY = {("serve",), ("shell",), ("capture",), ("deliver",), ("supervise",)}
"""These run, or what they start, until somebody ends them."""
ENDED = {("run",): ("--until-idle",)}
ENDLESS = ("--follow", "-f", "--help", "--port", "--ready-fd", "--spark")
CODES = {0, 1, 2, 3}
UNHEARD = {("streams", "reset"): 130, ("check",): 75}
"""Who asks whether one is sure gets no answer from an empty input; who waits for records gets none."""


def commands(command, path=()):
    """All commands by the words that call them."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, below in command.commands.items():
        yield from commands(below, (*path, name))


COMMANDS = {
    path: command
    for path, command in commands(typer.main.get_command(app))
    if path not in STAY
}


@st.composite
def lines(draw, path):
    """A command line with hostile words, among them some that fit."""
    words = list(path)
    hostile = st.sampled_from(WORDS)
    for param in COMMANDS[path].params:
        if param.param_type_name == "argument":
            usual = st.sampled_from(USUAL.get(param.name, WORDS))
            if draw(st.integers(0, 9)):
                words.append(draw(st.one_of(usual, usual, hostile)))
        elif not draw(st.integers(0, 3)):
            option = draw(st.sampled_from(param.opts))
            if option not in ENDLESS:
                words.append(option)
                words += [] if param.is_flag else [draw(hostile)]
    return [*words, *ENDED.get(path, ())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A home that has seen something, and files beside it; each command gets a copy."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "home/conf").mkdir(parents=True)
    (root / "home/conf/streams.toml").write_text(CONF)
    (root / "dir").mkdir()
    for name, data in FILES.items():
        (root / name).write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("FAIRWAY_HOME", str(root / "home"))
        for line in (
            "query register q.sql",
            "layer load zones z.geojson",
            "replay s f.csv",
            "run s --until-idle",
        ):
            done = CliRunner().invoke(app, line.split())
            assert done.exit_code == 0, done.output
    return root


@pytest.mark.spec("S8")
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings(
    "default"
)  # of libraries: warnings are no errors for people
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
@tries(3)
@given(data=st.data())
def test_whatever_stands_on_a_command_line_ends_in_a_line(folder, path, data):
    words = data.draw(lines(path))
    copied = Path(shutil.copytree(folder, folder.parent / "copied"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(copied)
            patch.setenv("FAIRWAY_HOME", str(copied / "home"))
            done = CliRunner().invoke(app, words, input="")
    finally:
        shutil.rmtree(copied)
    assert done.exception is None or isinstance(done.exception, SystemExit), words
    assert done.exit_code in {*CODES, UNHEARD.get(path, 0)}, (words, done.stderr)
    assert "Traceback" not in done.stderr
    assert "run with --debug" not in done.stderr, (words, done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    if done.exit_code == 2 and path != ("streams", "reset"):
        wrong = [line for line in done.stderr.splitlines() if line[:6] == "WRONG:"]
        assert len(errors) == 1 or wrong, (words, done.stderr)
    else:
        assert len(errors) <= 1, (words, done.stderr)
