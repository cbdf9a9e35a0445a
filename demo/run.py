"""`make demo`: the whole pipeline on central Helsinki, started by Airflow DAGs, in some minutes.

Layers from OpenStreetMap, regions, a stream of vehicles that is joined with them while it flows, fourteen
continuous queries - in rectangles, with layers, around a vehicle, nearest, counted -, compaction and a quality report;
then tables, demo/report.html, which is the page as one file, and the live page over the demo's home: in a terminal
it is served until Ctrl-C, and the vehicles drive on there; elsewhere, as under CI, nothing goes on (`--serve` and
`--no-serve` say otherwise).
"""

import argparse
import sys
import time
from pathlib import Path

from live import SPEED, SPEED_HELP, is_watched, serve
from pipeline import Demo, DemoError, begin, clear, perform, stop
from prepare import STREAM
from rich.console import Console
from summary import show

from st_common.config.streams import load_streams
from st_common.errors import FairwayError
from st_common.server.installation import Installation
from st_common.server.report import report_home
from tests.kit.report import collect

HERE = Path(__file__).resolve().parent
HOME, AIRFLOW, REPORT = HERE / "home", HERE / "airflow", HERE / "report.html"


def main() -> int:
    """Runs the demo; 0 when everything went well."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument(
        "--seconds",
        type=int,
        default=66,
        help="of stream; its clock starts at 23:59:30",
    )
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument(
        "--fast",
        action="store_true",
        help="replay as fast as possible, not by event time",
    )
    parser.add_argument(
        "--serve",
        action=argparse.BooleanOptionalAction,
        default=is_watched(),
        help="serve the page over the demo's home at the end, until Ctrl-C; default: in a terminal",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=None,
        help="of the page; default: 8640 if it is free",
    )
    parser.add_argument("--speed", type=float, default=SPEED, help=SPEED_HELP)
    given = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    started = time.monotonic()
    try:
        clear(HOME)
        demo = begin(
            console,
            HOME,
            vehicles=given.vehicles,
            seconds=given.seconds,
            engine=given.engine,
        )
        perform(demo, AIRFLOW, by_event_time=not given.fast)
    except (DemoError, FairwayError) as error:
        console.print(f"[red]error:[/] {error}")
        return 1
    except KeyboardInterrupt:
        console.print("interrupted")
        return 130
    finally:
        stop(HOME)
    finish(demo, seconds=time.monotonic() - started)
    if given.serve:
        serve(console, HOME, given.port, given.speed)
    tell_how(console)
    return 0


def finish(demo: Demo, *, seconds: float) -> None:
    """Ends with the figures on the screen, and with the report."""
    stream = load_streams(demo.made.conf)[STREAM]
    show(demo.console, collect(demo.home, stream))
    done = report_home(Installation(home=demo.home, conf=demo.made.conf), REPORT)
    demo.console.print(
        f"\n[bold]{REPORT.relative_to(HERE.parent)}[/] is the page of this minute as one file, "
        f"{done.size_bytes / 1e6:.1f} MB. All of it took {seconds:.0f} s."
    )


def tell_how(console: Console) -> None:
    """Says how the live page is opened later."""
    console.print(
        "[bold]make demo ARGS=page[/] opens the live page over demo/home.\n"
        "[dim]Look further: .venv/bin/fairway --home demo/home answer in_park[/]"
    )


if __name__ == "__main__":
    sys.exit(main())
