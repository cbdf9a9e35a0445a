"""Reports of streams, with maps: `python -m jobs.report_streams --home H --conf C [--stream S]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.entry import finish, job_parser, streams_of
from st_common.home import Home
from st_common.serving.report import collect
from st_common.serving.report_page import page
from st_common.settings import StreamSettings, conf_dir, home_dir, stream_of
from st_common.storage import LocalStorage


def report(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Writes a page for each stream that has a log: its map, queries with their answers, layers, regions, rejects."""
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    if arguments.stream:
        wanted = [stream_of(streams, arguments.stream)]
    else:
        wanted = [one for name, one in streams.items() if home.log(name).is_dir()]
    pages = [{"stream": one.name, "path": _write(home, one)} for one in wanted]
    return {"pages": pages}


def _write(home: Home, stream: StreamSettings) -> str:
    text = page(
        collect(home, stream),
        title=f"Stream {stream.name}",
        lead="Point at a query to see who is in its answer.",
    )
    folder = home.reports / "streams"
    LocalStorage(folder).put(f"{stream.name}.html", text.encode())
    return str(folder / f"{stream.name}.html")


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, writes, gives back the exit code."""
    parser = job_parser("report_streams", report.__doc__)
    parser.add_argument("--stream", help="only this stream; default: all with a log")
    return finish(report, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
