"""The shell: statements over lines, completion by place, changes as they come, on a pipe and on a real terminal."""

import os
import pty
import select
import signal
import sys
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from typer.testing import CliRunner

from st_common.answers.typed_text import is_ended, statement_at, stream_of
from st_common.cli import app
from st_common.cli.frame import Options
from st_common.cli.shell.carrying_out import Shell
from st_common.cli.shell.prompt import HISTORY_FILE, Completing, run
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.local import LocalEngine
from st_common.errors import LogError
from st_common.query.lookup import queries
from tests.kit.log_writer import bare_log

CONF = """
[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
attributes = { state = "string", driver = "string" }

[streams.ships-dk]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { mmsi = "long" }
"""
CENTRE = "REGISTER QUERY centre AS\n  SELECT * FROM taxis\n  INSIDE (0, 0, 10, 10);"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    return Home(tmp_path)


def shell_of(home):
    ctx = SimpleNamespace(obj=Options(home=home.root))
    return Shell(ctx, home, load_streams(home.root / "conf"))


def typed(home, text, capsys):
    """What the shell says to what somebody types, and then Ctrl-D."""
    with (
        create_pipe_input() as pipe,
        create_app_session(input=pipe, output=DummyOutput()),
        shell_of(home) as work,
    ):
        pipe.send_text(text + "\x04")
        run(work)
    return capsys.readouterr().out


def drive(home, *fixes):
    lines = "".join(f"{name},{second},{x},1,,\n" for name, second, x in fixes)
    bare_log(home.log("taxis")).append(
        b"id,t,x,y,state,driver\n" + lines.encode(), arrival_us=0
    )
    engine = LocalEngine(home, load_streams(home.root / "conf")["taxis"])
    while engine.batch():
        pass
    engine.close()


def completions(home, text, place=None):
    work = shell_of(home)
    document = Document(text, len(text) if place is None else place)
    return [
        one.text
        for one in Completing(work.known).get_completions(document, CompleteEvent())
    ]


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("DROP QUERY a;", True),
        ("DROP QUERY a; -- then", True),
        ("DROP QUERY a;\n\n", True),
        ("DROP QUERY a", False),
        ("DROP QUERY 'a;'", False),
        ('DROP QUERY "a;', False),
        ("DROP /* ; */", False),
        ("DROP /* ;", False),
        ("a; b", False),
        ("a; b;", True),
        ("-- ;", False),
        ("", False),
        ("'it''s;'", False),
        ("'it''s';", True),
    ],
)
def test_a_statement_ends_with_its_semicolon(text, ended):
    assert is_ended(text) is ended


def test_the_statement_around_the_cursor():
    text = "DROP QUERY ';'; SELECT * FROM R = taxis WHERE ; x"
    assert (
        statement_at(text, text.index("WHERE"))[1].strip()
        == "SELECT * FROM R = taxis WHERE"
    )
    assert statement_at(text, text.index("*"))[0] == " SELECT "
    assert [
        stream_of(one)
        for one in ('FROM "ships-dk" s', "from T [RANGE 1 h]", "SELECT x")
    ] == [
        "ships-dk",
        "T",
        None,
    ]


@pytest.mark.spec("P4")
def test_statements_over_several_lines_are_carried_out(home, capsys):
    said = typed(home, CENTRE.replace("\n", "\r") + "\r" + "SHOW QUERIES;\r", capsys)
    assert "registered centre (version 1)" in said
    assert "centre  1        taxis" in said
    assert [row.name for row in queries(home)] == ["centre"]


def test_an_error_is_underlined_and_the_prompt_comes_again(home, capsys):
    said = typed(
        home, "REGISTER QUERY west AS SELECT * FROM taxi;\rSHOW STREAMS;\r", capsys
    )
    assert "unknown stream 'taxi' (did you mean taxis?)" in said
    assert "\n                                       ^^^^" in said
    assert "ships-dk" in said
    assert queries(home) == []


def test_what_was_typed_is_kept_in_the_home_folder_for_its_owner_alone(
    home, capsys, monkeypatch
):
    monkeypatch.setenv("HOME", str(home.root / "elsewhere"))
    typed(home, "SHOW AREAS;\r", capsys)
    path = home.root / HISTORY_FILE
    assert "SHOW AREAS;" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert not (home.root / "elsewhere").exists()


def test_commands(home, capsys):
    typed(home, CENTRE.replace("\n", "\r") + "\r", capsys)
    drive(home, ("car7", 1, 5), ("car8", 1, 20))
    said = typed(
        home,
        "\\h\r\\answer CENTRE\r\\watch centre\r\\watch\r\\unwatch\r\\nonsense\r\\watch west\r\\q\r",
        capsys,
    )
    assert "\\unwatch [NAME]" in said
    assert "car7" in said
    assert "car8" not in said
    assert "watching centre\nwatching centre\nno longer watching centre" in said
    assert "there is no command \\nonsense" in said
    assert "unknown query 'west'" in said


@pytest.mark.spec("X12", "P4")
def test_statements_with_parameters_are_carried_out_for_each_row(home, capsys):
    table = home.root / "places.csv"
    table.write_text("id,x\n1,0\n2,10\n")
    near = "REGISTER QUERY near_$id AS SELECT * FROM taxis INSIDE CIRCLE ($x, 5, 3)"
    said = typed(
        home,
        f"\\params nowhere.csv\r\\params {table}\r{near};\rSHOW AREAS;\r\\params\r{near};\r\\q\r",
        capsys,
    )
    assert "nowhere.csv" in said
    assert f"parameters: {table}" in said
    assert "registered near_1 (version 1), near_2 (version 1)" in said
    assert said.count("registered") == 1
    assert "parameters: none" in said


@pytest.mark.spec("W6")
def test_changes_of_watched_queries_are_told_as_their_streams_have_them(home, capsys):
    with shell_of(home) as work:
        work.carry_out(CENTRE, watch=True)
        work.carry_out(
            "REGISTER QUERY left AS SELECT DSTREAM (*) FROM taxis INSIDE (0, 0, 10, 10);",
            watch=True,
        )
        assert work.watching.names == ["centre", "left"]
        drive(home, ("car7", 1, 5), ("car7", 2, 50))
        deadline, said = time.monotonic() + 20, ""
        while "- left" not in said and time.monotonic() < deadline:
            time.sleep(0.05)
            said += capsys.readouterr().out
    changes = [line for line in said.splitlines() if line[:1] in "+-="]
    assert sorted(line.split("  ")[0] for line in changes) == [
        "+ centre: car7",
        "- centre: car7",
        "- left: car7",
    ]
    assert "+ centre: car7  enter  1970-01-01T00:00:01Z" in changes


def test_a_watch_that_begins_later_tells_only_what_comes(home, capsys):
    with shell_of(home) as work:
        work.carry_out(CENTRE)
        drive(home, ("car7", 1, 5))
        work.watching.add("centre")
        work.watching.look()
        capsys.readouterr()  # before: the watch looks by itself, too
        drive(home, *[(f"o{number:02d}", 2, 5) for number in range(30)])
        deadline, said = time.monotonic() + 20, ""
        while "more changes" not in said and time.monotonic() < deadline:
            work.watching.look()
            said += capsys.readouterr().out
    assert "car7" not in said
    assert said.count("+ centre") == 20
    assert "centre: and 10 more changes" in said


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("text", "has", "has_not"),
    [
        ("", {"REGISTER", "SHOW", "EXPLAIN", "SELECT"}, {"taxis"}),
        ("reg", {"register"}, {"REGISTER"}),
        (
            "REGISTER QUERY q AS SELECT * FROM ",
            {"taxis", '"ships-dk"'},
            {"WHERE", "state"},
        ),
        ('REGISTER QUERY q AS SELECT * FROM "sh', {'"ships-dk"'}, {"taxis"}),
        (
            "REGISTER QUERY q AS SELECT * FROM taxis ",
            {"WHERE", "INSIDE", "JOIN"},
            {"SELECT", "state"},
        ),
        (
            "REGISTER QUERY q AS SELECT * FROM taxis WHERE ",
            {"state", "speed_mps", "LOWER"},
            {"mmsi", "INSIDE"},
        ),
        ('REGISTER QUERY q AS SELECT * FROM "ships-dk" WHERE ', {"mmsi"}, {"state"}),
        (
            "REGISTER QUERY q AS SELECT * FROM taxis WHERE x > 1 ",
            {"AND", "INSIDE"},
            {"WHERE"},
        ),
        (
            "REGISTER QUERY q AS SELECT * FROM taxis [RANGE BY '50 km' RATTR ",
            {"SPACE", "TIME"},
            {"ROWS"},
        ),
        ("SHOW ", {"QUERIES", "AREAS", "STREAMS"}, {"centre"}),
        ("DROP QUERY ce", {"centre"}, {"centre2"}),
        ("DROP QUERY 'ce", set(), {"centre"}),
        ("REGISTER QUERY q AS SELECT * FROM taxis INSIDE to", {"town"}, set()),
        (
            "SELECT * FROM taxis a WHERE NOT EXISTS (SELECT 1 FROM ",
            {"taxis", "LAYER"},
            {"town"},
        ),
        ("SHOW AREAS; SHOW ", {"QUERIES"}, {"REGISTER"}),
        ("\\w", {"watch"}, {"REGISTER"}),
        ("\\watch ", {"centre"}, {"watch"}),
    ],
)
def test_completion_is_by_place(home, text, has, has_not):
    with shell_of(home) as work:
        work.carry_out(CENTRE + "CREATE AREA town AS (0, 0, 1, 1);")
    found = set(completions(home, text))
    assert has <= found
    assert not has_not & found


def test_columns_before_from_are_those_of_the_stream_behind_it(home):
    text = "REGISTER QUERY q AS SELECT  FROM taxis"
    assert "driver" in completions(home, text, text.index(" FROM"))


def test_what_cannot_be_read_completes_nothing(home, monkeypatch):
    def broken(*_):
        raise LogError("a hole")

    monkeypatch.setattr("st_common.query.lookup.queries", broken)
    assert completions(home, "DROP QUERY ") == ["IF EXISTS"]
    assert completions(home, "\\watch ") == []
    assert "QUERY" in completions(home, "DROP ")


@pytest.mark.spec("P4")
def test_without_a_terminal_statements_come_from_standard_input(home):
    text = f"-- a file\n{CENTRE}\n\nSHOW QUERIES;\n\\answer centre\n\\q\nnever read"
    done = CliRunner().invoke(app, ["--home", str(home.root), "shell"], input=text)
    assert done.exit_code == 0
    assert "registered centre" in done.output
    wrong = CliRunner().invoke(
        app,
        ["--home", str(home.root), "shell"],
        input="DROP QUERY west;\nDROP QUERY centre;\n",
    )
    assert wrong.exit_code == 2
    assert "unknown query 'west'" in wrong.output
    assert [row.name for row in queries(home)] == ["centre"]


@contextmanager
def terminal(home):
    """`fairway shell` on a pseudo-terminal."""
    child, descriptor = pty.fork()
    if child == 0:
        environment = {
            **os.environ,
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "COLUMNS": "120",
        }
        command = [
            sys.executable,
            "-m",
            "st_common.cli",
            "--home",
            str(home.root),
            "shell",
        ]
        os.execve(sys.executable, command, environment)
    try:
        yield descriptor
    finally:
        deadline = time.monotonic() + 10
        while (
            ended := os.waitpid(child, os.WNOHANG)[0]
        ) == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.close(descriptor)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def read_until(descriptor, wanted, seconds=60.0):
    said, deadline = b"", time.monotonic() + seconds
    while wanted not in said and time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                said += os.read(descriptor, 65536)
            except OSError:
                break
    assert wanted in said, said.decode(errors="replace")
    return said


def read_until_quiet(descriptor, quiet_s=2.0):
    """A menu shows the words that are found so far; the one that is taken stands in the line when all are found."""
    while select.select([descriptor], [], [], quiet_s)[0]:
        os.read(descriptor, 65536)


@pytest.mark.e2e
@pytest.mark.spec("P4")
def test_on_a_real_terminal(home):
    with terminal(home) as descriptor:
        read_until(descriptor, b"fairway>")
        os.write(
            descriptor,
            b"REGISTER QUERY centre AS SELECT * FROM taxis\rINSIDE (0, 0, 10, 10);\r",
        )
        read_until(descriptor, b"registered centre")
        os.write(descriptor, b"SHOW QUE")
        drive(home, ("car7", 1, 5))
        read_until(descriptor, b"+ centre: car7")
        os.write(descriptor, b"\t")
        read_until(descriptor, b"RIES")
        read_until_quiet(descriptor)
        os.write(descriptor, b";\r")
        read_until(descriptor, b"owner")
        os.write(descriptor, b"\\q\r")
        read_until(descriptor, b"\\q")
