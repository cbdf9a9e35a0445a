"""`fairway query ...`, from a file to the log and back."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.query.lookup import queries

CONF = """
[streams.taxis]
format = "csv"
columns = { object = "id", x = "lon", y = "lat" }
attributes = { type = "string", speed = "double" }
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
    return lambda *args, **options: CliRunner().invoke(
        app, ["query", *args], prog_name="fairway", **options
    )


@pytest.mark.spec("P4")
def test_a_file_is_registered_listed_shown_and_dropped(run, home: Home):
    one = "REGISTER QUERY a AS\n SELECT * FROM taxis INSIDE (1, 1, 0, 0)"
    text = f"-- two queries\n{one};\nREGISTER QUERY b AS SELECT * FROM taxis"
    Path("q.sql").write_text(text, encoding="utf-8-sig")
    assert run("check", "q.sql").stdout == "2 statements, nothing wrong\n"
    assert run("list").stdout.count("\n") == 1
    assert (
        run("register", "q.sql").stdout == "registered a (version 1), b (version 1)\n"
    )
    assert run("list").stdout == (
        "query  version  stream  owner  state       text\n"
        "a      1        taxis   ada    registered  REGISTER QUERY a AS SELECT * FROM taxis INSIDE (1, 1, 0, 0)\n"
        "b      1        taxis   ada    registered  REGISTER QUERY b AS SELECT * FROM taxis\n"
    )
    shown = run("show", "a").stdout
    assert (
        "canonical REGISTER QUERY a AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)\n"
        in shown
    )
    assert "register version 1 at position 0 of taxis" in shown
    assert run("drop", "a").stdout == "dropped a (version 1)\n"
    assert [row.name for row in queries(home)] == ["b"]
    assert "a was dropped" in run("show", "a").stdout
    assert run("list", "--stream", "ships").stdout.count("\n") == 1


def test_statements_come_from_text_or_standard_input(run, home: Home):
    assert (
        run("register", "--text", "REGISTER QUERY a AS SELECT * FROM taxis").exit_code
        == 0
    )
    found = run(
        "register",
        "-",
        input="REPLACE QUERY a AS SELECT * FROM taxis; REGISTER QUERY b AS SELECT * FROM taxis; DROP QUERY b",
    )
    assert (
        found.stdout
        == "registered b (version 1)\nreplaced a (version 2)\ndropped b (version 1)\n"
    )
    assert [(row.name, row.version) for row in queries(home)] == [("a", 2)]


def test_many_names_are_summed_up(run):
    text = ";".join(
        f"REGISTER QUERY q{number} AS SELECT * FROM taxis" for number in range(5)
    )
    assert (
        run("register", "--text", text).stdout
        == "registered 5 queries, q0 (version 1) to q4 (version 1)\n"
    )


@pytest.mark.spec("P4")
@pytest.mark.parametrize("command", ["register", "check"])
def test_an_error_points_at_its_place_and_nothing_is_registered(
    run, home: Home, command: str
):
    Path("q.sql").write_text(
        "REGISTER QUERY a AS SELECT * FROM taxis;\nREGISTER QUERY b AS SELECT * FROM taxi",
        encoding="utf-8",
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
        (
            ("register", "q.sql", "--text", "x"),
            "statements come from a file or from --text",
        ),
        (
            ("register", "none.sql"),
            "none.sql cannot be read: No such file or directory",
        ),
        (
            ("register", "SELECT * FROM taxis"),
            "there is no file 'SELECT * FROM taxis' (a statement itself is given by --text)",
        ),
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


@pytest.mark.spec("W8")
@pytest.mark.parametrize("command", ["register", "check"])
def test_how_a_bare_word_is_read_is_told(run, command: str):
    text = "REGISTER QUERY a AS SELECT *\nFROM taxis WHERE Type = Car"
    found = run(command, "--text", text)
    assert found.exit_code == 0
    assert (
        found.stderr
        == "note: line 2, column 25: Car is no column of taxis: read as the text 'Car'\n"
    )
    Path("q.sql").write_text(text.replace("QUERY a", "QUERY b"), encoding="utf-8")
    assert run(command, "q.sql").stderr.startswith("note: q.sql:2:25: Car is no column")


def test_show_and_explain_print_what_stands_at_their_place(
    run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
    found = run(
        "register",
        "--text",
        "CREATE AREA MyArea AS (1, 1, 0, 0); SHOW AREAS; REGISTER QUERY a AS SELECT * FROM taxis INSIDE myarea;"
        "SHOW QUERIES; EXPLAIN A; DROP AREA MyArea; SHOW AREAS; DROP QUERY a; SHOW QUERIES; SHOW STREAMS;"
        "EXPLAIN SELECT * FROM taxis WHERE Type = Car",
    )
    assert found.exit_code == 0, found.output
    blocks = found.stdout.split("\n\n")
    registered = "a      1        taxis   ada    registered  REGISTER QUERY a AS SELECT * FROM taxis INSIDE myarea"
    assert blocks[0].splitlines() == [
        "registered a (version 1)",
        "dropped a (version 1)",
        "created area MyArea",
        "dropped area MyArea",
    ]
    assert blocks[1].splitlines() == [
        "area    owner  created               region",
        "MyArea  ada    2023-11-14T22:13:20Z  (0, 0, 1, 1)",
    ]
    assert blocks[2].splitlines() == [
        "query  version  stream  owner  state       text",
        registered,
    ]
    assert blocks[3].startswith(
        "query     REGISTER QUERY a AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)\n"
    )
    assert "inside box 0 0, 1 1" in blocks[4]
    assert [len(block.splitlines()) for block in blocks[5:7]] == [1, 1]
    assert blocks[7].splitlines()[1].split() == [
        "taxis",
        "csv",
        "EPSG:4326",
        "yes",
        "type,",
        "speed",
    ]
    assert blocks[8].startswith("query     SELECT * FROM taxis WHERE type = 'Car'\n")
    assert "Car is no column of taxis" in found.stderr


def test_explain_of_a_query_is_what_the_explain_command_says(run, home: Home):
    run("register", "--text", "REGISTER QUERY a AS SELECT * FROM taxis")
    shown = run("register", "--text", "EXPLAIN a").stdout
    assert shown == CliRunner().invoke(app, ["explain", "A"]).stdout
    assert run("register", "--text", "SHOW QUERIES").stdout == run("list").stdout


@pytest.mark.spec("P4")
def test_check_says_every_error_of_a_file_and_does_nothing(run, home: Home):
    text = (
        "REGISTER QUERY a AS SELECT * FROM taxi;\nREGISTER QUERY b AS SELECT * FROM taxis INSDE (1, 1, 2, 2);\n"
        "REGISTER QUERY c AS SELECT sped FROM taxis;\nSHOW QUERYS;\nCREATE AREA x AS 'POINT(1 2)'"
    )
    Path("q.sql").write_text(text, encoding="utf-8")
    found = run("check", "q.sql")
    assert found.exit_code == 2
    lines = [line for line in found.stderr.splitlines() if line.startswith("q.sql:")]
    assert [int(line.split(":")[1]) for line in lines] == [1, 2, 3, 4, 5]
    assert "did you mean taxis?" in lines[0]
    assert "did you mean INSIDE?" in lines[1]
    assert "did you mean speed?" in lines[2]
    assert run("register", "q.sql").stderr == found.stderr
    assert queries(home) == []


def test_check_carries_nothing_out(run, home: Home):
    text = "CREATE AREA x AS (0, 0, 1, 1); REGISTER QUERY a AS SELECT * FROM taxis INSIDE X; EXPLAIN a; SHOW AREAS"
    assert run("check", "--text", text).stdout == "4 statements, nothing wrong\n"
    assert queries(home) == []
    assert not (home.root / "registry" / "areas.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("EXPLAIN nobody", "unknown query 'nobody'"),
        (
            "REGISTER QUERY a AS SELECT * FROM taxis; DROP QUERY a; EXPLAIN a",
            "query 'a' was dropped",
        ),
        ("EXPLAIN SELECT * FROM taxi", "unknown stream 'taxi'"),
        ("DROP AREA nowhere", "unknown area 'nowhere'"),
    ],
)
def test_what_cannot_be_shown_is_pointed_at(run, text: str, says: str):
    found = run("register", "--text", text)
    assert (found.exit_code, found.stdout) == (2, "")
    assert says in found.stderr


@pytest.mark.spec("X5")
def test_an_older_version_can_still_be_looked_at(run):
    run(
        "register",
        "--text",
        "REGISTER QUERY a AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)",
    )
    run(
        "register",
        "--text",
        "REPLACE QUERY A AS SELECT * FROM taxis INSIDE (5, 5, 6, 6)",
    )
    assert "INSIDE (5, 5, 6, 6)" in run("show", "a").stdout
    old = run("show", "A", "--version", "1").stdout
    assert "a (version 1) on stream taxis, by ada\n" in old
    assert (
        "text      REGISTER QUERY a AS SELECT * FROM taxis INSIDE (0, 0, 1, 1)\n" in old
    )
    assert '"maxx": 1.0' in old
    run("drop", "a")
    assert "INSIDE (5, 5, 6, 6)" in run("show", "a", "--version", "2").stdout
    missing = run("show", "a", "--version", "3")
    assert missing.exit_code == 2
    assert "query 'a' has no version 3 (its versions are 1, 2)" in missing.stderr


def test_without_settings_a_text_is_still_judged_as_a_text(run, home: Home):
    (home.root / "conf" / "streams.toml").unlink()
    found = run(
        "check", "--text", "REGISTER QUERY a AS SELECT * FROM taxis; REGISTER b"
    )
    assert found.exit_code == 2
    assert found.stderr.startswith("error: line 1, column 51: expected QUERY")
