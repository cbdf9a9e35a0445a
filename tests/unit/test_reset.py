"""`fairway streams reset`: a stream is begun anew from its log, with the settings of now (SPEC S3)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.batch.reset import reset
from st_common.cli import app
from st_common.config.home import Home
from st_common.operations.alerts import read_alerts
from tests.kit.log_writer import bare_log

STREAM = """
[streams.{name}]
format = "csv"
crs = "planar"
time_unit = "s"
engine = "local"
max_ahead_s = "off"
columns = {{ object = "id", event_ts = "t", x = "{x}", y = "{y}" }}
"""
ROWS = b"id,t,lon,lat\na,1,5,50\nb,1,50,5\nc,yesterday,1,1\n"
HOLDER = """
import sys
from pathlib import Path
from st_common.engine.owner import owned
from st_common.config.home import Home
with owned(Home(Path(sys.argv[1])), "s", engine="local"):
    print("it runs", flush=True)
    sys.stdin.readline()
"""
QUERY = "REGISTER QUERY west AS SELECT * FROM {name} INSIDE (0, 0, 10, 100)"


def settings(root: Path, x: str = "lon", y: str = "lat") -> None:
    text = STREAM.format(name="s", x=x, y=y) + STREAM.format(
        name="other", x="lon", y="lat"
    )
    (root / "conf" / "streams.toml").write_text(text, encoding="utf-8")


def fairway(*args: str, code: int = 0, **options: str):
    done = CliRunner().invoke(app, list(args), prog_name="fairway", **options)
    assert done.exit_code == code, f"{args}: {done.output}"
    return done


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two streams that have run; of `s` the columns x and y were swapped in the settings."""
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    settings(tmp_path, x="lat", y="lon")
    fairway("query", "register", "--text", QUERY.format(name="s"))
    for name in ("s", "other"):
        bare_log(Home(tmp_path).log(name)).append(ROWS, arrival_us=1_000_000)
        fairway("run", name, "--until-idle")
    return Home(tmp_path)


def rejected(home: Home) -> list[str]:
    return sorted(tables.read(home.table("rejects"))["stream"].to_pylist())


def stored(home: Home, stream: str) -> list[tuple[str, float, float]]:
    rows = tables.read(home.table("positions", stream)).to_pylist()
    return sorted((row["object"], row["x"], row["y"]) for row in rows)


@pytest.mark.spec("S3")
def test_a_stream_with_wrong_columns_is_decoded_anew_and_nothing_else_changes(home):
    assert answer(home, "west")["object"].to_pylist() == ["b"]
    settings(home.root)
    fairway("run", "s", "--until-idle")
    assert answer(home, "west")["object"].to_pylist() == [
        "b"
    ]  # what stands in the log stays as it was read
    assert any("fairway streams reset s" in alert.text for alert in read_alerts(home))
    assert "3 segments" in fairway("streams", "reset", "s", "--yes").stdout
    fairway("run", "s", "--until-idle")
    assert answer(home, "west")["object"].to_pylist() == ["a"]
    assert (
        stored(home, "s")
        == stored(home, "other")
        == [("a", 5.0, 50.0), ("b", 50.0, 5.0)]
    )
    assert rejected(home) == ["other", "s"]
    assert "west: 1 members" in fairway("verify", "west").stdout
    assert fairway("verify").stdout.count("WRONG") == 0


@pytest.mark.spec("S3")
def test_it_asks_first_and_is_refused_while_the_stream_runs(home):
    fairway("streams", "reset", "s", code=1, input="n\n")
    assert stored(home, "s")
    command = [sys.executable, "-c", HOLDER, str(home.root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "it runs\n"
        fairway("streams", "reset", "s", "--yes", code=4)
        holder.communicate("end\n")
    assert stored(home, "s")
    assert (
        "there is no stream 'nobody'"
        in fairway("streams", "reset", "nobody", "--yes", code=2).stderr
    )


@pytest.mark.spec("S3", "X6")
def test_one_that_is_killed_anywhere_is_done_again_and_no_engine_starts_in_between(
    home, tmp_path
):
    settings(home.root)
    for steps in range(40):
        left = steps

        def killed() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        try:
            reset(home, "s", between=killed)
            break
        except KeyboardInterrupt:
            if (home.stream("s") / "reset.json").exists():
                assert (
                    "was cut off" in fairway("run", "s", "--until-idle", code=2).stderr
                )
    else:
        raise AssertionError("it never came to its end")
    fairway("run", "s", "--until-idle")
    assert stored(home, "s") == [("a", 5.0, 50.0), ("b", 50.0, 5.0)]
    assert rejected(home) == ["other", "s"]


@pytest.mark.spec("S3")
def test_a_log_that_lacks_segments_is_not_reset(home):
    first = next(home.log("s").glob("segments/*/000000000000.seg"))
    shutil.move(first, home.root / "elsewhere")
    fairway("streams", "reset", "s", "--yes", code=2)
    assert stored(home, "s")
