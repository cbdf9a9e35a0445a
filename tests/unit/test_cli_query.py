"""`fairway query ...`, from a file to the log and back."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.home import Home
from st_common.query.registry import queries

CONF = """
[streams.taxis]
format = "csv"
columns = { object = "id", x = "lon", y = "lat" }
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    return Home(tmp_path)


@pytest.fixture
def run(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    monkeypatch.chdir(tmp_path)
    return lambda *args, **options: CliRunner().invoke(app, ["query", *args], prog_name="fairway", **options)


@pytest.mark.spec("P4")
def test_a_file_is_registered_listed_shown_and_dropped(run, home: Home):
    one = "REGISTER QUERY a AS\n SELECT * FROM taxis INSIDE (1, 1, 0, 0)"
    text = f"-- two queries\n{one};\nREGISTER QUERY b AS SELECT * FROM taxis"
    Path("q.sql").write_text(text, encoding="utf-8-sig")
    assert run("check", "q.sql").stdout == "2 statements, nothing wrong\n"
    assert run("list").stdout.count("\n") == 1
    assert run("register", "q.sql").stdout == "registered a (version 1), b (version 1)\n"
    assert run("list").stdout == (
        "query  version  stream  owner  text\n"
        "a      1        taxis   ada    REGISTER QUERY a AS SELECT * FROM taxis INSIDE (1, 1, 0, 0)\n"
        "b      1        taxis   ada    REGISTER QUERY b AS SELECT * FROM taxis\n"
    )
    shown = run("show", "a").stdout
    assert "canonical REGISTER QUERY a AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)\n" in shown
    assert "register version 1 at position 0 of taxis" in shown
    assert run("drop", "a").stdout == "dropped a (version 1)\n"
    assert [row.name for row in queries(home)] == ["b"]
    assert "a was dropped" in run("show", "a").stdout
    assert run("list", "--stream", "ships").stdout.count("\n") == 1


def test_statements_come_from_text_or_standard_input(run, home: Home):
    assert run("register", "--text", "REGISTER QUERY a AS SELECT * FROM taxis").exit_code == 0
    found = run(
        "register",
        "-",
        input="REPLACE QUERY a AS SELECT * FROM taxis; REGISTER QUERY b AS SELECT * FROM taxis; DROP QUERY b",
    )
    assert found.stdout == "registered b (version 1)\nreplaced a (version 2)\ndropped b (version 1)\n"
    assert [(row.name, row.version) for row in queries(home)] == [("a", 2)]


def test_many_names_are_summed_up(run):
    text = ";".join(f"REGISTER QUERY q{number} AS SELECT * FROM taxis" for number in range(5))
    assert run("register", "--text", text).stdout == "registered 5 queries, q0 (version 1) to q4 (version 1)\n"


@pytest.mark.spec("P4")
@pytest.mark.parametrize("command", ["register", "check"])
def test_an_error_points_at_its_place_and_nothing_is_registered(run, home: Home, command: str):
    Path("q.sql").write_text(
        "REGISTER QUERY a AS SELECT * FROM taxis;\nREGISTER QUERY b AS SELECT * FROM taxi", encoding="utf-8"
    )
    found = run(command, "q.sql")
    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr == (
        "error: q.sql:2:35: unknown stream 'taxi' (did you mean taxis?)\n"
        "  REGISTER QUERY b AS SELECT * FROM taxi\n"
        "                                    ^^^^\n"
    )
    assert queries(home) == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("register",), "statements come from a file or from --text"),
        (("register", "q.sql", "--text", "x"), "statements come from a file or from --text"),
        (("register", "none.sql"), "none.sql cannot be read: No such file or directory"),
        (("register", "latin.sql"), "latin.sql is not UTF-8: byte 0"),
        (("register", "--text", " -- nothing"), "the text has no statement"),
        (("register", "--text", "DROP QUERY \udce9"), "not valid UTF-8"),
        (("drop", "nobody"), "unknown query 'nobody'"),
        (("show", "nobody"), "unknown query 'nobody'"),
    ],
)
def test_wrong_use_says_what_to_do(run, home: Home, args: tuple[str, ...], says: str):
    Path("latin.sql").write_bytes(b"\xe9")
    found = run(*args)
    assert found.exit_code == 2
    assert found.stderr.startswith("error: ")
    assert says in found.stderr


def test_a_missing_streams_file_is_named(run, home: Home):
    (home.root / "conf" / "streams.toml").unlink()
    found = run("register", "--text", "REGISTER QUERY a AS SELECT * FROM taxis")
    assert found.exit_code == 2
    assert "streams.toml does not exist" in found.stderr
