"""A home whose stream was begun in micro-batches, by a version that had them: it is refused, and the way out works.

`tests/homes/micro-batch.tar.gz` is such a home, as that version left it: six cars for 20 s, three queries, two shards.
"""

import re
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.query.created_streams import known_streams
from tests.kit.on_spark import follow_on

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("S2")]
STORED = Path(__file__).parents[1] / "homes" / "micro-batch.tar.gz"
TOLD = ("position", "seq", "query", "object", "sign", "cause", "value", "x", "y")


@pytest.fixture
def home(tmp_path):
    with tarfile.open(STORED) as stored:
        stored.extractall(tmp_path / "home", filter="data")
    return Home(tmp_path / "home")


def fairway(home, *words):
    return CliRunner().invoke(app, [*words, "--home", str(home.root)])


def without_mode(home):
    """Takes the line out of the settings."""
    path = home.root / "conf" / "streams.toml"
    text = path.read_text()
    path.write_text(re.sub(r"\n\[streams\.cars\.spark\]\nmode.*\n", "\n", text))
    assert "mode" not in path.read_text()


def changes(home):
    rows = tables.read(home.table("changes", "cars")).select(TOLD)
    return rows.sort_by([("position", "ascending"), ("seq", "ascending")]).to_pylist()


def test_the_setting_is_refused_with_what_to_do(home):
    done = fairway(home, "run", "cars", "--until-idle")
    assert done.exit_code == 2
    (said,) = done.output.splitlines()
    file = re.escape(f"{home.root}/conf/streams.toml")
    assert re.search(rf"{file}:\d+: stream 'cars': spark: mode", said)
    assert "take the line out" in said
    assert 'spark.readStream.format("fairway_log")' in said


@pytest.mark.parametrize(
    "words",
    [
        ("run", "cars", "--until-idle"),
        ("run", "cars", "--engine", "spark"),
        ("streams", "reshard", "cars", "--engine", "local"),
        ("streams", "reshard", "cars", "--shards", "3"),
    ],
    ids=["run", "run on spark", "to the local engine", "to more shards"],
)
def test_what_would_go_on_with_its_state_is_refused_and_nothing_is_written(home, words):
    without_mode(home)
    before, log = changes(home), sorted(home.log("cars").rglob("*.seg"))
    done = fairway(home, *words)
    assert done.exit_code == 2
    (said,) = done.output.splitlines()
    assert "stream 'cars' was begun in micro-batches" in said
    assert "`fairway streams reset cars`" in said
    assert changes(home) == before
    assert sorted(home.log("cars").rglob("*.seg")) == log


def test_a_reset_makes_all_of_it_again_from_the_log(spark, home, tmp_path):
    without_mode(home)
    before = changes(home)
    assert len(before) == 97
    assert fairway(home, "streams", "reset", "cars", "--yes").exit_code == 0
    assert not tables.exists(home.table("changes", "cars"))
    stream = known_streams(home, home.root / "conf")["cars"]
    follow_on(spark, home, stream)
    assert changes(home) == before
    more = tmp_path / "more.csv"
    more.write_text("id,t,x,y,speed\nc0,1020,1,1,5\nc1,1021,30,30,5\n")
    assert fairway(home, "replay", "cars", str(more)).exit_code == 0
    follow_on(spark, home, stream)
    assert len(changes(home)) > len(before)
    assert changes(home)[: len(before)] == before
