"""Reports of streams as pages: `python -m st_common.processes.report_streams --home H [--stream S] [--hours 24]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import stream_of
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import REPORT_STREAMS
from st_common.server.installation import Installation
from st_common.server.report import has_fixes, report_home


def report(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Writes for each stream that has fixes the page of its last hours, as `fairway streams report` does."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = streams_of(home, conf)
    if arguments.stream:
        wanted = [stream_of(streams, arguments.stream).name]
    else:
        wanted = [name for name in streams if has_fixes(home, name)]
    span = timedelta(hours=arguments.hours)
    pages = [_write(home, conf, name, span) for name in wanted]
    empty = sorted({*streams} - {*wanted}) if not arguments.stream else []
    return {"pages": pages, "without_fixes": empty}


def _write(home: Home, conf: Path, stream: str, span: timedelta) -> dict[str, str]:
    place = Installation(home=home, conf=conf, only=(stream,))
    path = home.reports / "streams" / f"{stream}.html"
    done = report_home(place, path, span=span)
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
