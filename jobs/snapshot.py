"""Brings the levels of storage up to date: `python -m jobs.snapshot --home H [--stream S]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.home import Home
from st_common.levels.latest import flush_latest
from st_common.levels.taking import take_due
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.settings import conf_dir, home_dir, stream_of


def snapshot(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Flushes `latest` and takes every snapshot that is due, of one stream or of all, also beside a running engine."""
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    if arguments.stream:
        stream_of(streams, arguments.stream)
    names = [arguments.stream] if arguments.stream else list(streams)
    latest = {name: flush_latest(home, streams[name]) for name in names}
    return {
        "latest": latest,
        "snapshots": {name: len(take_due(home, streams[name])) for name in names},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, writes what is due, gives back the exit code."""
    parser = job_parser("snapshot", snapshot.__doc__)
    parser.add_argument(
        "--stream", help="only this stream; default: all of the settings"
    )
    arguments = parser.parse_args(argv)
    return finish(snapshot, arguments)


if __name__ == "__main__":
    sys.exit(main())
