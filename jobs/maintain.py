"""Maintains everything that a home holds: `python -m jobs.maintain --home H [--no-purge]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.entry import finish, job_parser
from st_common.home import Home
from st_common.lifecycle.maintain import maintain
from st_common.settings import home_dir


def maintain_home(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compacts every table, purges what is older than its retention, deletes what no reader can want any more."""
    home = Home(home_dir(arguments.home))
    today = datetime.fromtimestamp(time.time_ns() // 1_000_000_000, UTC).date()
    done = maintain(home, today=today, purge=not arguments.no_purge)
    return {"tables": [each.to_json() for each in done]}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, maintains the home, gives back the exit code."""
    parser = job_parser("maintain", maintain_home.__doc__)
    parser.add_argument(
        "--no-purge",
        action="store_true",
        help="keep rows that are older than their table's retention",
    )
    arguments = parser.parse_args(argv)
    return finish(lambda: maintain_home(arguments))


if __name__ == "__main__":
    sys.exit(main())
