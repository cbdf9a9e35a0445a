"""Maintains everything that a home holds: `python -m jobs.maintain --home H [--no-purge]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from st_common.home import Home
from st_common.lifecycle.leftovers import Cleared, clear_leftovers
from st_common.lifecycle.log_retention import retain_logs
from st_common.lifecycle.maintain import maintain
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.settings import conf_dir, has_streams, home_dir


def maintain_home(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compacts every table, purges what is older than its retention, deletes what no reader can want any more."""
    home = Home(home_dir(arguments.home))
    now_us = time.time_ns() // 1_000
    today = datetime.fromtimestamp(now_us // 1_000_000, UTC).date()
    purge = not arguments.no_purge
    conf = conf_dir(home.root, arguments.conf)
    streams = streams_of(home, conf) if purge and has_streams(conf) else {}
    tables = maintain(home, today=today, purge=purge, streams=streams)
    done = [each.to_json() for each in tables]
    logs = retain_logs(home, streams, now_us=now_us)
    cleared = clear_leftovers(home, conf, today=today) if purge else Cleared()
    kept = [each.to_json() for each in logs]
    return {"tables": done, "logs": kept, "cleared": asdict(cleared)}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, maintains the home, gives back the exit code."""
    parser = job_parser("maintain", maintain_home.__doc__)
    parser.add_argument(
        "--no-purge",
        action="store_true",
        help="keep rows that are older than their table's retention",
    )
    arguments = parser.parse_args(argv)
    return finish(maintain_home, arguments)


if __name__ == "__main__":
    sys.exit(main())
