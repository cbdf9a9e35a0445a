"""`make up`: a whole Airflow on PostgreSQL on this machine, with vehicles that move through central Helsinki.

Scheduler, DAG processor, triggerer, API server and database listen on 127.0.0.1 alone and go on until `make down`. The
first time a home is made: DAGs load layers and regions, a stream begins, queries are registered, and its records come
in as their times say, for a quarter of an hour. Called again it starts what does not run.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from pipeline import (
    BIN,
    ROOT,
    Demo,
    DemoError,
    begin,
    clear,
    command,
    load_layers,
    supervise,
)
from prepare import STREAM
from rich.console import Console
from served_runs import Served

from st_common.errors import FairwayError
from st_common.operations.records import private_append
from tests.kit.local_airflow.rest import Rest, log_in, unhealthy
from tests.kit.local_airflow.services import PATIENCE_S, log_of, start_services
from tests.kit.local_airflow.setup import (
    ADMIN,
    MARK,
    Setup,
    airflow_environment,
    make_setup,
)

HERE = Path(__file__).resolve().parent / "up"
HOME, AIRFLOW = HERE / "home", HERE / "airflow"
DONE = HOME / ".first-start"
RUNNING_DAGS = (
    "stream_supervisor",
    "osm_static_load",
    "prepartition",
    "maintenance",
    "reprocess",
    "dq_report",
    "rebalance",
)


def main() -> int:
    """Starts everything and says where it is; 0 when it is up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vehicles", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=900, help="of stream")
    parser.add_argument("--engine", choices=["spark", "local"], default="local")
    given = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    try:
        setup = make_setup(AIRFLOW)
        rest = start(console, setup)
        if DONE.exists():
            go_on(rest)
        else:
            fill(console, setup, rest, given)
    except (DemoError, FairwayError) as error:
        console.print(f"[red]error:[/] {error}")
        return 1
    console.print(
        f"\n[bold]{setup.url}[/] is Airflow; user [bold]{ADMIN}[/], password [bold]{setup.password}[/].\n"
        f"[dim]make down ends it. {HERE.relative_to(ROOT)} holds all that it keeps.[/]"
    )
    return 0


def start(console: Console, setup: Setup) -> Rest:
    """Starts what does not run, waits until all of it says that it is well, and logs in.

    Raises:
        DemoError: it takes too long.
        FairwayError: PostgreSQL is missing, or something cannot be started.
    """
    since = time.monotonic()
    environment = airflow_environment(setup, home=HOME, conf=HOME / "conf")
    with console.status("PostgreSQL and Airflow start"):
        started = start_services(setup, environment)
        while missing := unhealthy(setup):
            if time.monotonic() > since + PATIENCE_S:
                raise DemoError(f"{missing} do not start: see {setup.logs}")
            time.sleep(0.5)
        rest = log_in(setup)
        rest.set_pools(ROOT / "conf" / "pools.json")
        for dag in RUNNING_DAGS:
            rest.await_dag(dag, within_s=PATIENCE_S)
    what = ", ".join(started) if started else "all of it runs already"
    console.print(f"[green]✓[/] {what} [dim]{time.monotonic() - since:.1f} s[/]")
    return rest


def fill(console: Console, setup: Setup, rest: Rest, given: argparse.Namespace) -> None:
    """The first start, also after one that was cut off: layers, regions, a stream that runs, queries, and its records.

    Raises:
        DemoError: a DAG or a command failed.
        FairwayError: Airflow refuses.
    """
    clear(HOME)
    demo = begin(
        console,
        HOME,
        vehicles=given.vehicles,
        seconds=given.seconds,
        engine=given.engine,
    )
    runs = Served(rest=rest)
    for dag in RUNNING_DAGS:
        rest.unpause(dag)
    load_layers(demo, runs)
    supervise(demo, runs, running=True, until=("running", "idle"))
    command(demo, ["query", "register", str(demo.made.queries)], "fourteen queries")
    feed(demo, setup)
    DONE.touch()


def go_on(rest: Rest) -> None:
    """Lets the stream run again that `make down` stopped: the supervisor's next tick starts it."""
    streams = HOME / "conf" / "streams.toml"
    text = streams.read_text(encoding="utf-8")
    streams.write_text(
        text.replace("running = false", "running = true"), encoding="utf-8"
    )
    rest.trigger("stream_supervisor")


def feed(demo: Demo, setup: Setup) -> None:
    """Lets the vehicles' records come in as their times say, by a process that goes on alone."""
    argv = [str(BIN / "fairway"), "--home", str(HOME), "replay", STREAM]
    with private_append(log_of(setup, "replay")) as log:
        subprocess.Popen(
            [*argv, str(demo.made.fixes), "--rate", "event"],
            cwd=ROOT,
            env={**os.environ, MARK: str(setup.folder)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


if __name__ == "__main__":
    sys.exit(main())
