"""`make demo`: the whole pipeline on central Helsinki, started by Airflow DAGs, in some minutes.

Layers from OpenStreetMap, regions, a stream of vehicles that is joined with them while it flows, fourteen
continuous queries - in rectangles, with layers, around a vehicle, nearest, counted -, compaction and a quality report;
then a table, and demo/report.html with a map.
"""

import argparse
import sys
import time
from pathlib import Path

from pipeline import Demo, DemoError, begin, clear, perform, stop
from prepare import ATTRIBUTION, LICENCE, STREAM
from rich.console import Console
from summary import show

from st_common.errors import FairwayError
from st_common.serving.report import collect
from st_common.serving.report_page import page
from st_common.settings import load_streams

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
    return 0


def finish(demo: Demo, *, seconds: float) -> None:
    """Ends with the figures on the screen, and with the report."""
    stream = load_streams(demo.made.conf)[STREAM]
    report = collect(demo.home, stream, steps=demo.steps, note=ATTRIBUTION)
    rows = demo.made.counts.rows
    lead = (
        f"A minute of traffic: {report.objects:,} vehicles on the roads of central Helsinki, joined with OpenStreetMap "
        f"while they moved, through midnight. {rows:,} records, {len(report.queries)} continuous queries, "
        f"{report.changes:,} exact changes of their answers. Point at a query to see who is in its answer."
    )
    footer = f"Map data {ATTRIBUTION}, {LICENCE}, from {demo.made.extract.package}. The vehicles are made up."
    REPORT.write_text(
        page(report, title="Fairway on Helsinki", lead=lead, footer=footer),
        encoding="utf-8",
    )
    show(demo.console, report)
    demo.console.print(
        f"\n[bold]{REPORT.relative_to(HERE.parent)}[/] has the map. All of it took {seconds:.0f} s."
    )
    demo.console.print(
        f"[dim]Look further: .venv/bin/fairway --home {HOME.relative_to(HERE.parent)} answer in_park[/]"
    )


if __name__ == "__main__":
    sys.exit(main())
