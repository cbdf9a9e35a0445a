"""Reports of streams as pages: `python -m st_common.processes.report_streams --home H [--stream S] [--hours 24]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import chosen
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import REPORT_STREAMS
from st_common.server.installation import Installation
from st_common.server.report import has_fixes, report_home

_HOURS = 24.0


def report(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Writes for each stream that has fixes the page of its last hours, as `fairway streams report` does.

    A stream without fixes is named, and no error: Airflow asks for each stream that there is, from the first night on.
    """
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = streams_of(home, conf)
    named = chosen(streams, *arguments.stream)
    wanted = [name for name in named if has_fixes(home, name)]
    pages = [_write(home, conf, name, arguments) for name in wanted]
    return {"pages": pages, "without_fixes": sorted({*named} - {*wanted})}


def _write(
    home: Home, conf: Path, stream: str, arguments: argparse.Namespace
) -> dict[str, str]:
    place = Installation(home=home, conf=conf, only=(stream,))
    path = home.reports / "streams" / f"{stream}.html"
    done = report_home(
        place,
        path,
        since=arguments.from_,
        until=arguments.to,
        span=timedelta(hours=arguments.hours or _HOURS),
    )
    return {
        "stream": stream,
        "path": str(path),
        "from": done.since.isoformat(),
        "to": done.until.isoformat(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, writes, gives back the exit code."""
    return finish(report, job_parser(REPORT_STREAMS).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
