"""`fairway query register --plan` and `fairway query show --json`: plans from and to files."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.home import Home
from st_common.query.builder import query
from st_common.query.lookup import find, queries

CONF = """
[streams.taxis]
format = "csv"
columns = { object = "id", x = "lon", y = "lat" }
attributes = { type = "string" }
"""
PLAN = (
    query("taxis")
    .in_space((0, 0, 1, 1))
    .enlarge_metres(50)
    .compare_with((0, 0, 0.5, 0.5))
    .negative_matches()
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    return Home(tmp_path)


@pytest.fixture
def run(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(home.root))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *args, **options: CliRunner().invoke(
        app, ["query", *args], prog_name="fairway", **options
    )


@pytest.mark.spec("B14")
def test_a_plan_goes_from_a_file_to_the_registry_and_back(run, home: Home):
    Path("plan.json").write_text(json.dumps(PLAN.build().to_json()), encoding="utf-8")
    assert (
        run("register", "--plan", "plan.json", "--name", "a").stdout
        == "registered a (version 1)\n"
    )
    assert find(home, "a").plan == PLAN.build()
    shown = run("show", "a", "--json").stdout
    assert json.loads(shown) == json.loads(
        Path("plan.json").read_text(encoding="utf-8")
    )
    assert run("register", "--plan", "-", "--name", "b", input=shown).exit_code == 0
    assert find(home, "b").plan == PLAN.build()


@pytest.mark.spec("B14", "X5")
def test_a_plan_replaces_another_and_older_versions_are_kept(run, home: Home):
    for number, built in enumerate((PLAN, PLAN.positive_matches())):
        Path("plan.json").write_text(
            json.dumps(built.build().to_json()), encoding="utf-8"
        )
        run(
            "register",
            "--plan",
            "plan.json",
            "--name",
            "a",
            *(["--replace"] if number else []),
        )
    assert find(home, "a").version == 2
    assert json.loads(run("show", "a", "--json").stdout) == json.loads(
        json.dumps(PLAN.positive_matches().plan.to_json())
    )
    assert (
        json.loads(run("show", "a", "--json", "--version", "1").stdout)["compare"][
            "negative"
        ]
        is True
    )
    run("drop", "a")
    assert "was dropped" in run("show", "a", "--json").stderr


@pytest.mark.parametrize(
    ("content", "more", "says"),
    [
        (
            '{"v": 3, "stream": "taxis", "insde": {}}',
            ("--name", "a"),
            "plan.json: $: unknown part 'insde' (did you mean",
        ),
        (
            '{"v": 3, "stream": "taxis", "where": "typ = 1"}',
            ("--name", "a"),
            "unknown column 'typ'",
        ),
        ('{"v": 3, "stream": "taxi"}', ("--name", "a"), "unknown stream 'taxi'"),
        ('{"v": 3, "stream": "taxis"}', (), "--plan FILE --name NAME"),
        (
            '{"v": 3, "stream": "taxis"}',
            ("--name", "a", "--text", "DROP QUERY b"),
            "a plan stands alone",
        ),
    ],
)
def test_what_is_wrong_registers_nothing(
    run, home: Home, content: str, more: tuple[str, ...], says: str
):
    Path("plan.json").write_text(content, encoding="utf-8")
    done = run("register", "--plan", "plan.json", *more)
    assert done.exit_code == 2
    assert says in done.stderr
    assert queries(home) == []
