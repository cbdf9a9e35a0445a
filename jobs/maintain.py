"""Maintains everything that a home holds: `python -m jobs.maintain --home H [--no-purge | --levels]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.errors import TableError, one_line
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.processes.upkeep import levels, maintain_all
from st_common.programs import MAINTAIN


def maintain_home(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Maintains all of it, or brings `latest` and snapshots up to date."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = partial(streams_of, home, conf)
    if arguments.levels:
        return levels(home, streams, arguments)
    done = maintain_all(home, conf, streams, arguments)
    for line in done.refused:
        print(f"error: {one_line(line)}", file=sys.stderr, flush=True)
    return done.to_json()


def _failure_of(summary: Mapping[str, Any]) -> tuple[int, str]:
    left = [one for one in summary.get("tables", ()) if one["refused"]]
    told = (f"{one['table']}: {one['refused']}" for one in left)
    return TableError.exit_code if left else 0, "; ".join(told)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, maintains the home, gives back the exit code: 2 when a table was left as it is."""
    arguments = job_parser(MAINTAIN).parse_args(argv)
    return finish(maintain_home, arguments, failure_of=_failure_of)


if __name__ == "__main__":
    sys.exit(main())
