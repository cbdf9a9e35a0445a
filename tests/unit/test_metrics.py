"""What `fairway status --metrics` says of a real home, read as Prometheus reads it."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from st_common.answers import metrics as metrics_module
from st_common.answers.latency import latency_s
from st_common.answers.metrics import Metrics, registry_of
from st_common.answers.tallies import Tallies
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.controls.rows import Register
from st_common.controls.writing import to_bytes
from st_common.delivery.settings import wanted
from st_common.errors import StorageError
from st_common.log.log import Log
from st_common.operations.alerts import tell
from st_common.processes.supervise import main as supervise
from st_common.query.plan import Box, Plan
from st_common.tables.purging import purge

pytestmark = pytest.mark.spec("S10")

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
"""
DELIVERIES = """[deliveries.hook]
stream = "cars"
to = "file"
path = "out"
"""
ROOT = Path(__file__).resolve().parents[2]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


class Stage:
    """A home with one stream, fed and run to its end by the commands that a user has."""

    def __init__(self, root: Path) -> None:
        (root / "conf").mkdir()
        (root / "conf" / "streams.toml").write_text(STREAMS)
        self.root, self.home = root, Home(root / "home")
        self.places = ["--home", str(self.home.root), "--conf", str(root / "conf")]

    def register(self, name: str, *, upto: float) -> None:
        box = Box(minx=0, miny=0, maxx=upto, maxy=upto)
        plan = Plan(stream="cars", inside=box).to_json()
        row = Register(query=name, version=1, plan=plan, text="", owner="")
        Log(self.home.log("cars")).append(to_bytes(row), arrival_us=0, control=True)

    def feed(self, *records: str) -> None:
        path = self.root / "rows.csv"
        path.write_text("\n".join(["id,t,x,y", *records, ""]))
        self.fairway("replay", "cars", str(path), "--no-end")

    def fairway(self, *words: str) -> str:
        done = CliRunner().invoke(app, [*words, *self.places], prog_name="fairway")
        assert done.exit_code == 0, done.output
        return done.stdout

    def metrics(self) -> Samples:
        return parsed(self.fairway("status", "--metrics", "-"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.register("near", upto=5)
    made.register("wide", upto=50)
    made.feed("a,1,1,1", "b,1,9,9", "c,2,x,1", "d,2,,", "a,3,9,9")
    return made


def test_counts_of_a_stream_are_those_that_its_records_make(stage: Stage) -> None:
    stage.fairway("run", "cars", "--until-idle")
    samples = stage.metrics()
    assert of(samples, "fairway_fixes_total", stream="cars") == 3
    assert of(samples, "fairway_rejects_total", stream="cars") == 2
    reasons = {
        dict(labels)["reason"]: value
        for (name, labels), value in samples.items()
        if name == "fairway_rejected_records_total"
    }
    assert sum(reasons.values()) == 2
    near = {"stream": "cars", "query": "near"}
    assert of(samples, "fairway_query_changes_total", **near) == 2, "a came and left"
    assert of(samples, "fairway_query_members", **near) == 0
    wide = {"stream": "cars", "query": "wide"}
    assert of(samples, "fairway_query_changes_total", **wide) == 2
    assert of(samples, "fairway_query_members", **wide) == 2
    assert of(samples, "fairway_changes_total", stream="cars") == 4


def test_the_dashboard_shows_metrics_and_labels_that_there_are(stage: Stage) -> None:
    stage.fairway("run", "cars", "--until-idle")
    (stage.root / "conf" / "deliveries.toml").write_text(DELIVERIES)
    stage.fairway("deliver", "hook", "--until-idle")
    labels_of: dict[str, set[str]] = {}
    for name, labels in stage.metrics():
        labels_of.setdefault(name, set()).update(label for label, _ in labels)
    panels = json.loads((ROOT / "docs" / "grafana.json").read_text())["panels"]
    drawn = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(drawn) >= len(panels)
    for expression in drawn:
        (name,) = re.findall(r"fairway_\w+", expression)
        assert name in labels_of, expression
        grouped = ",".join(re.findall(r"by \(([^)]*)\)", expression)).split(",")
        assert {label.strip() for label in grouped} - {""} <= labels_of[name]


def test_what_waits_is_lag_and_what_is_committed_has_a_latency(stage: Stage) -> None:
    before = stage.metrics()
    assert of(before, "fairway_lag_segments", stream="cars") == 3
    assert of(before, "fairway_lag_seconds", stream="cars") > 0
    assert of(before, "fairway_stream_health", stream="cars", health="stopped") == 1
    stage.fairway("run", "cars", "--until-idle")
    after = stage.metrics()
    assert of(after, "fairway_lag_segments", stream="cars") == 0
    assert of(after, "fairway_lag_seconds", stream="cars") == 0
    counted = of(after, "fairway_commit_latency_seconds_count", stream="cars")
    assert counted == 1, "one segment of records"
    last = of(after, "fairway_commit_latency_seconds_bucket", stream="cars", le="+Inf")
    assert last == counted
    assert of(after, "fairway_state_bytes", stream="cars") > 0
    table = {"stream": "cars", "table": "positions"}
    files = list(stage.home.table("positions", "cars").rglob("*.parquet"))
    assert of(after, "fairway_table_files", **table) == len(files) > 0
    stored = sum(path.stat().st_size for path in files)
    assert of(after, "fairway_table_bytes", **table) == stored


def test_later_looks_read_what_is_new_and_say_what_a_first_look_says(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = stage.root / "conf"
    watching = Metrics(
        home=stage.home,
        streams=lambda: load_streams(conf),
        deliveries=lambda: wanted(conf, load_streams(conf)),
    )
    registry = registry_of(watching)
    list(registry.collect())
    for second in (4, 5):
        stage.feed(f"a,{second},{second % 2},1", f"e,{second},x,1")
        stage.fairway("run", "cars", "--until-idle")
        list(registry.collect())
    lasting = watching._tallies["cars"]
    fresh = type(lasting)().look(stage.home, "cars")
    assert lasting.changes == fresh.changes
    assert lasting.members == fresh.members
    assert lasting.rejects == fresh.rejects
    assert lasting.latency.tolist() == fresh.latency.tolist()
    stage.fairway("streams", "reset", "cars", "--yes")
    list(registry.collect())
    assert not watching._tallies["cars"].changes, "it begins anew with the stream"


def test_a_purge_beside_the_engine_s_commits_changes_no_latency(stage: Stage) -> None:
    for second in (4, 5):
        stage.feed(f"a,{second},{second % 2},1")
        stage.fairway("run", "cars", "--until-idle")
    waited_s = latency_s(stage.home, "cars").tolist()
    changes = stage.home.table("changes", "cars")
    purge(changes, lambda files: np.arange(len(files)) == 0, before=1)
    stage.feed("a,6,20,1")
    stage.fairway("run", "cars", "--until-idle")
    assert latency_s(stage.home, "cars").tolist()[:-1] == waited_s
    assert len(waited_s) == 3


def test_a_look_that_failed_halfway_counts_nothing_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.fairway("run", "cars", "--until-idle")
    lasting = Tallies()

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("the disk is away")

    with monkeypatch.context() as away:
        away.setattr("st_common.answers.tallies.tables.read", refuse)
        with pytest.raises(StorageError):
            lasting.look(stage.home, "cars")
    lasting.look(stage.home, "cars")
    assert lasting.latency.sum() == 1, "one segment of records"


def test_when_the_supervisor_looked_last_is_shown(stage: Stage) -> None:
    name = "fairway_stream_look_timestamp_seconds"
    assert all(key != name for key, _ in stage.metrics())
    before_s = time.time_ns() / 1e9
    assert supervise(stage.places) == 0
    looked_s = of(stage.metrics(), name, stream="cars")
    assert before_s - 2 < looked_s < time.time_ns() / 1e9 + 2


def test_queries_beyond_a_number_are_added_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.fairway("run", "cars", "--until-idle")
    monkeypatch.setattr(metrics_module, "MOST_QUERIES", 1)
    samples = stage.metrics()
    queries = {
        dict(labels)["query"]: value
        for (name, labels), value in samples.items()
        if name == "fairway_query_changes_total"
    }
    assert len(queries) == 2
    assert queries["(others)"] == 2


def test_a_stream_that_cannot_be_read_hides_no_other(stage: Stage) -> None:
    conf = stage.root / "conf" / "streams.toml"
    conf.write_text(STREAMS + STREAMS.replace("cars", "buses"))
    segments = stage.home.log("buses") / "segments" / "00000000"
    segments.mkdir(parents=True)
    (segments / "notes.txt").write_text("not a segment")
    tell(stage.home, "buses", "unseen", level="error")
    samples = stage.metrics()
    assert of(samples, "fairway_stream_unreadable", stream="buses") == 1
    assert of(samples, "fairway_stream_unreadable", stream="cars") == 0
    assert of(samples, "fairway_alerts_total", level="error") == 1


def test_a_file_is_written_whole(stage: Stage) -> None:
    path = stage.root / "fairway.prom"
    stage.fairway("status", "--metrics", str(path))
    assert of(parsed(path.read_text()), "fairway_log_segments", stream="cars") == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "0.0.0.0:9464"), "is not 127.0.0.1:PORT"),
        (("--listen", "127.0.0.1:http"), "is not 127.0.0.1:PORT"),
        (("--listen", "127.0.0.1:70000"), "is not 127.0.0.1:PORT"),
        (("--listen", "127.0.0.1:" + "1" * 5000), "is not 127.0.0.1:PORT"),
        (("--listen", "127.0.0.1:0", "--metrics", "f"), "do not go together"),
        (("--json", "--metrics", "-"), "do not go together"),
    ],
)
def test_metrics_are_for_this_machine_alone(
    stage: Stage, words: tuple[str, ...], message: str
) -> None:
    done = CliRunner().invoke(app, ["status", *words, *stage.places])
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.fixture
def served(stage: Stage) -> Iterator[Callable[[], str]]:
    words = ["status", "--listen", "127.0.0.1:0", *stage.places]
    process = subprocess.Popen(
        [sys.executable, "-m", "st_common.cli", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        url = process.stdout.readline().strip()
        yield lambda: httpx.get(url, timeout=120).text
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.communicate()


def test_they_are_served_as_they_are_at_each_look(
    stage: Stage, served: Callable[[], str]
) -> None:
    assert of(parsed(served()), "fairway_log_segments", stream="cars") == 3
    stage.feed("f,9,1,1")
    samples = parsed(served())
    assert of(samples, "fairway_log_segments", stream="cars") > 3
    own = {name for name, _ in samples if not name.startswith("fairway_")}
    assert own == set(), "nothing of the process that serves"
