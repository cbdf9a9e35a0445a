"""The demo's steps: each says what it did and how long it took."""

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_runs import DemoError, Runs, airflow
from prepare import (
    GROUP,
    PLACES,
    STREAM,
    STREETS,
    Prepared,
    find_extract,
    prepare,
    settings,
    source,
)
from rich.console import Console
from rich.progress import Progress

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.log.log import Log
from st_common.operations.status import StreamStatus, read_all_status
from st_common.position import position_of
from st_common.replay.files import Rate, replay

__all__ = ["Demo", "DemoError", "begin", "clear", "perform", "stop"]

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv" / "bin"
MARKER = ".fairway-demo"
LAYERS = {"places": PLACES, "streets": STREETS}
REGIONS = 40
PATIENCE_S = 180.0


@dataclass(slots=True)
class Demo:
    """What the steps share: where things lie, where they speak, what was done so far."""

    made: Prepared
    console: Console
    engine: str

    @property
    def home(self) -> Home:
        """The demo's home folder."""
        return Home(self.made.home)

    def done(self, name: str, what: str, since: float) -> None:
        """Says that a step is done that began at `since`."""
        seconds = time.monotonic() - since
        self.console.print(
            f"[green]✓[/] [bold]{name:<18}[/] {what} [dim]{seconds:.1f} s[/]"
        )


def clear(folder: Path) -> None:
    """Removes what an earlier demo left, after stopping a stream that it left running; nothing but a demo's home.

    Raises:
        DemoError: the folder is something else.
    """
    if not folder.exists():
        return
    if not (folder / MARKER).exists():
        raise DemoError(f"{folder} was not made by the demo: move it away first")
    stop(folder)
    shutil.rmtree(folder)


def begin(
    console: Console, folder: Path, *, vehicles: int, seconds: int, engine: str
) -> Demo:
    """Everything that the pipeline starts from: the map, settings, queries, the vehicles' fixes.

    Raises:
        DemoError: there is no map.
    """
    started = time.monotonic()
    try:
        extract = find_extract()
    except FileNotFoundError as error:
        raise DemoError(str(error)) from None
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    console.print(f"[dim]{source(extract)}[/]")
    made = prepare(
        folder, extract=extract, vehicles=vehicles, seconds=seconds, engine=engine
    )
    demo = Demo(made=made, console=console, engine=engine)
    records = f"{made.counts.rows:,} records, {made.counts.bad:,} of them unreadable"
    what = f"{vehicles:,} vehicles for {seconds} s: {records}"
    demo.done("prepare", what, started)
    return demo


def perform(demo: Demo, folder: Path, *, by_event_time: bool) -> None:
    """The pipeline, DAG by DAG, with Airflow's home in `folder`.

    Maintenance runs beside the living stream, on the day that ended in it.
    """
    with airflow(folder, home=demo.made.home, conf=demo.made.conf) as runs:
        load_layers(demo, runs)
        supervise(demo, runs, running=True, until=("running", "idle"))
        command(
            demo,
            ["query", "register", str(demo.made.queries)],
            "fourteen continuous queries, while the stream runs",
        )
        drain(demo, "the engine has read the queries", jobs=("engine",))
        feed(demo, rate="event" if by_event_time else "fast")
        drain(
            demo,
            "the engine and the archive have committed everything",
            jobs=("engine", "archive"),
        )
        dag(
            demo,
            runs,
            "maintenance",
            "the day that ended: small files into large ones; what is too old",
        )
        dag(
            demo,
            runs,
            "dq_report",
            "the day that ended, by Great Expectations on Spark, and its page",
        )
        supervise(demo, runs, running=False, until=("stopped", "finished"))
    command(demo, ["verify"], "every answer again, by brute force")


def load_layers(demo: Demo, runs: Runs) -> None:
    """Layers, then regions made from them, then the same layers by these regions: a new version of each."""
    layers = [f"{name}={','.join(kinds)}" for name, kinds in LAYERS.items()]
    form = {
        "layers": layers,
        "file": str(demo.made.extract.path),
        "group": GROUP,
    }
    what = f"layers by Spark into Delta: {', '.join(LAYERS)}"
    dag(demo, runs, "osm_static_load", what, **form)
    form = {
        "group": GROUP,
        "strategy": "sample",
        "share": 0.3,
        "regions": REGIONS,
        "source": "layer:streets",
    }
    what = f"{REGIONS} regions by Sedona's KD-tree over a sample of the streets, and both layers by them"
    dag(demo, runs, "prepartition", what, **form)


def dag(demo: Demo, runs: Runs, name: str, what: str, **form: object) -> None:
    """Runs a DAG with the values of its form."""
    started = time.monotonic()
    with demo.console.status(f"{name}: {what}"):
        runs.run(name, **form)
    demo.done(name, what, started)


def command(demo: Demo, words: Sequence[str], what: str) -> None:
    """Runs `fairway WORDS` on the demo's home.

    Raises:
        DemoError: it failed.
    """
    started = time.monotonic()
    argv = [str(BIN / "fairway"), "--home", str(demo.made.home), *words]
    with demo.console.status(f"fairway {' '.join(words[:2])}"):
        ended = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, check=False
        )
    if ended.returncode:
        raise DemoError(
            f"fairway {' '.join(words)}: {ended.stderr.strip() or ended.stdout.strip()}"
        )
    demo.done(f"fairway {words[0]}", what, started)


def supervise(demo: Demo, runs: Runs, *, running: bool, until: Sequence[str]) -> None:
    """Says in the settings what should be, lets the supervisor see to it, and waits until it is so."""
    started = time.monotonic()
    text = settings(running=running, engine=demo.engine)
    (demo.made.conf / "streams.toml").write_text(text, encoding="utf-8")
    with demo.console.status(
        f"stream_supervisor: {'start' if running else 'stop'} the stream"
    ):
        runs.run("stream_supervisor")
        await_jobs(
            demo,
            lambda jobs: any(
                job.job == "engine" and job.state in until for job in jobs
            ),
        )
    demo.done(
        "stream_supervisor",
        f"the stream is {'running' if running else 'stopped'}",
        started,
    )


def feed(demo: Demo, *, rate: Rate) -> None:
    """Replays the vehicles' fixes into the stream's log: as their event times say, or as fast as possible."""
    started, total = time.monotonic(), demo.made.counts.rows
    stream = load_streams(demo.made.conf)[STREAM]
    quiet = not demo.console.is_terminal
    with Progress(console=demo.console, transient=True, disable=quiet) as bar:
        task = bar.add_task("replay", total=total)
        report = replay(
            Log(demo.home.log(STREAM)),
            demo.made.fixes,
            stream,
            rate=rate,
            progress=lambda records: bar.update(task, completed=records),
        )
    how = "as their times say" if rate == "event" else "as fast as possible"
    demo.done(
        "replay",
        f"{report.records:,} records in {report.segments} segments, {how}",
        started,
    )


def drain(demo: Demo, what: str, *, jobs: Sequence[str]) -> None:
    """Waits until these jobs of the stream have committed everything that the log holds now."""
    started = time.monotonic()
    end = position_of(Log(demo.home.log(STREAM)).end(), 0)

    def reached(found: Sequence[StreamStatus]) -> bool:
        return set(jobs) <= {job.job for job in found if job.position >= end}

    with demo.console.status(f"until {what}"):
        await_jobs(demo, reached)
    demo.done("drain", what, started)


def await_jobs(demo: Demo, holds: Callable[[Sequence[StreamStatus]], bool]) -> None:
    """Waits until what the stream's jobs say of themselves fulfils a condition.

    Raises:
        DemoError: it does not within some minutes.
    """
    folder, deadline = demo.home.stream(STREAM), time.monotonic() + PATIENCE_S
    while not holds(read_all_status(folder)):
        if time.monotonic() > deadline:
            raise DemoError(f"the stream takes too long: see {folder / 'engine.log'}")
        time.sleep(0.2)


def stop(folder: Path) -> None:
    """Stops the demo's stream if it is still running, as after an interruption."""
    conf = folder / "conf"
    streams = conf / "streams.toml"
    if not streams.exists():
        return
    text = streams.read_text(encoding="utf-8")
    streams.write_text(
        text.replace("running = true", "running = false"), encoding="utf-8"
    )
    argv = [
        str(BIN / "fairway"),
        "supervise",
        "--home",
        str(folder),
        "--conf",
        str(conf),
    ]
    subprocess.run(argv, cwd=ROOT, capture_output=True, check=False)
