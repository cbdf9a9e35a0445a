"""A misspelt key of one stream: every command that reads settings says so in one line and exits with 2."""

import pytest
from typer.testing import CliRunner

from st_common.cli import app

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"

[streams.cars]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unti = "s"
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(SETTINGS)
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    return lambda *args: CliRunner().invoke(app, list(args), prog_name="fairway")


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("status", "--json"),
        ("streams", "list"),
        ("status", "--metrics", "-"),
        ("verify",),
    ],
    ids=" ".join,
)
def test_a_misspelt_key_is_one_line_and_exit_code_2(run, tmp_path, command):
    done = run(*command)
    assert done.exit_code == 2
    assert done.stderr == (
        f"WRONG: {tmp_path}/conf/streams.toml:10: stream 'cars': unknown key 'time_unti'"
        " (did you mean 'time_unit'?)\n"
    )


def test_what_works_on_another_stream_is_done_all_the_same(run, tmp_path):
    fixes = tmp_path / "fixes.ndjson"
    fixes.write_text('{"id": "a", "t": 1, "x": 1, "y": 1}\n')
    done = run("replay", "ships", str(fixes))
    assert "time_unti" in done.stderr
    assert done.exit_code == 2
    assert (tmp_path / "streams" / "ships" / "log").is_dir()
    # An engine is supervised by its exit code: it ends by how its own stream went.
    assert run("run", "ships", "--until-idle").exit_code == 0
    assert run("run", "cars", "--until-idle").exit_code == 2
