"""One wrong table in conf/streams.toml stops that stream alone: commands name it, the supervisor alerts (SPEC S3)."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.answers.answers import answer
from st_common.cli import app
from st_common.config.home import Home
from st_common.operations.alerts import read_alerts
from st_common.processes.supervise import main as supervise
from tests.kit.log_writer import bare_log

GOOD = """
[streams.good]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
WRONG = GOOD.replace("good", "bad").replace('"csv"', '"xml"')
DELIVERY = (
    '[deliveries.d]\nstream = "bad"\nto = "webhook"\nurl = "https://example.org/in"\n'
)
SAYS = "stream 'bad': format = 'xml' is none of"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    settings(tmp_path, GOOD + WRONG)
    (tmp_path / "conf" / "deliveries.toml").write_text(DELIVERY, encoding="utf-8")
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path)


def settings(root: Path, text: str) -> None:
    (root / "conf" / "streams.toml").write_text(text, encoding="utf-8")


def fairway(*args: str, code: int = 0):
    done = CliRunner().invoke(app, list(args), prog_name="fairway")
    assert done.exit_code == code, f"{args}: {done.output}"
    return done


@pytest.mark.spec("S3", "C4")
def test_the_other_streams_run_and_commands_name_the_wrong_one(home):
    text = "REGISTER QUERY q AS SELECT * FROM good"
    assert SAYS in fairway("query", "register", "--text", text, code=2).stderr
    bare_log(home.log("good")).append(b"id,t,x,y\na,1,1,1\n", arrival_us=1_000_000)
    fairway("run", "good", "--until-idle")
    assert answer(home, "q")["object"].to_pylist() == ["a"]
    assert SAYS in fairway("run", "bad", "--until-idle", code=2).stderr
    assert SAYS in fairway("objects", "bad", code=2).stderr
    refused = fairway(
        "query", "register", "--text", "REGISTER QUERY r AS SELECT * FROM bad", code=2
    ).stderr
    assert "stream 'bad' has wrong settings" in refused
    assert SAYS in refused
    for shown in (fairway("streams", "list", code=2), fairway("status", code=2)):
        assert SAYS in shown.stderr
        assert "good" in shown.stdout
    assert "there is no stream 'nobody'" in fairway("run", "nobody", code=2).stderr


@pytest.mark.spec("S3", "C4")
def test_the_supervisor_alerts_once_and_again_when_it_is_mended(home, capsys):
    for _ in range(2):
        assert supervise(["--home", str(home.root)]) == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert done["streams"] == {"good": "stopped", "bad": "bad_config"}
    (alert,) = read_alerts(home)
    assert (alert.stream, alert.level) == ("bad", "error")
    assert alert.text.startswith("bad_config: ")
    assert SAYS in alert.text
    settings(home.root, GOOD + GOOD.replace("good", "bad"))
    assert supervise(["--home", str(home.root)]) == 0
    assert [one.text.partition(":")[0] for one in read_alerts(home)] == [
        "bad_config",
        "stopped",
    ]


@pytest.mark.spec("S3")
def test_two_streams_whose_views_would_have_one_name_are_named_together(home):
    one, other = GOOD.replace("good", "a-b"), GOOD.replace("good", "a_b")
    settings(home.root, one + other)
    says = "streams 'a-b' and 'a_b' would have the same views in SQL"
    for stream in ("a-b", "a_b"):
        log = bare_log(home.log(stream))
        log.append(b"id,t,x,y\na,1,1,1\n", arrival_us=1_000_000)
    fairway("run", "a-b", "--until-idle")
    assert says in fairway("run", "a_b", "--until-idle", code=2).stderr
    assert says in fairway("sql", "SELECT 1", code=2).stderr
    shutil.rmtree(home.stream("a_b"))
    assert "1" in fairway("sql", "SELECT count(*) FROM positions_a_b").output
