"""Maintains everything that a home holds: `python -m jobs.maintain --home H [--no-purge | --levels]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import chosen, has_streams
from st_common.history.taking import bring_up
from st_common.maintenance.leftovers import Cleared, clear_leftovers
from st_common.maintenance.log_retention import retain_logs
from st_common.maintenance.maintain import maintain, upkeep_by
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import MAINTAIN


def maintain_home(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compacts every table, purges what is older than its retention, deletes what no reader can want any more."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    if arguments.levels:
        return bring_up(home, chosen(streams_of(home, conf), arguments.stream))
    now_us = time.time_ns() // 1_000
    today = datetime.fromtimestamp(now_us // 1_000_000, UTC).date()
    purge = arguments.purge
    streams = streams_of(home, conf) if purge and has_streams(conf) else {}
    with upkeep_by(home, arguments.engine) as upkeep_of:
        maintained = maintain(
            home, today=today, purge=purge, streams=streams, upkeep_of=upkeep_of
        )
        done = [each.to_json() for each in maintained]
    logs = retain_logs(home, streams, now_us=now_us)
    cleared = clear_leftovers(home, conf, today=today) if purge else Cleared()
    kept = [each.to_json() for each in logs]
    return {"tables": done, "logs": kept, "cleared": asdict(cleared)}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, maintains the home, gives back the exit code."""
    return finish(maintain_home, job_parser(MAINTAIN).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
