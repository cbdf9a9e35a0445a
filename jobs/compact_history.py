"""Compacts closed days: `python -m jobs.compact_history --home H [--before 2024-01-31]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from jobs.entry import finish, job_parser, streams_of
from st_common.home import Home
from st_common.ops.history import compact_beats, compact_history
from st_common.settings import conf_dir, home_dir


def compact(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Makes few large files of many small ones in the closed days of every stream; never touches an open day."""
    home = Home(home_dir(arguments.home))
    streams = streams_of(conf_dir(home.root, arguments.conf))
    today = datetime.fromtimestamp(time.time_ns() // 1_000_000_000, UTC).date()
    done = [
        *compact_history(home, streams, before=arguments.before),
        *compact_beats(home, today=today),
    ]
    return {"tables": [each.to_json() for each in done]}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, compacts, gives back the exit code."""
    parser = job_parser("compact_history", compact.__doc__)
    parser.add_argument(
        "--before", type=date.fromisoformat, help="only days (UTC) before this one"
    )
    arguments = parser.parse_args(argv)
    return finish(lambda: compact(arguments))


if __name__ == "__main__":
    sys.exit(main())
