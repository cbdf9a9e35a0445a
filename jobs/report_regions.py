"""Draws the regions of a group: `python -m jobs.report_regions GROUP --home H`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.home import Home
from st_common.processes.entry import finish, job_parser
from st_common.serving.regions_page import write_regions_page
from st_common.settings import home_dir


def report(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Writes a page with a picture of the regions and their load, by each strategy."""
    path = write_regions_page(Home(home_dir(arguments.home)), arguments.group)
    return {"path": str(path)}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, draws, gives back the exit code."""
    parser = job_parser("report_regions", report.__doc__)
    parser.add_argument("group", help="the group of streams and layers")
    return finish(report, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
