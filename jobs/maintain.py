"""Maintains everything that a home holds: `python -m jobs.maintain --home H [--no-purge | --levels]`."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from st_common import tables
from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import has_streams, stream_of
from st_common.history.latest import flush_latest
from st_common.history.taking import take_due
from st_common.maintenance.leftovers import Cleared, clear_leftovers
from st_common.maintenance.log_retention import retain_logs
from st_common.maintenance.maintain import Upkeep, by_delta_rs, maintain
from st_common.maintenance.stored import Stored
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import MAINTAIN


def maintain_home(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compacts every table, purges what is older than its retention, deletes what no reader can want any more."""
    home = Home(home_dir(arguments.home))
    if arguments.levels:
        return _levels(home, arguments)
    now_us = time.time_ns() // 1_000
    today = datetime.fromtimestamp(now_us // 1_000_000, UTC).date()
    purge = arguments.purge
    conf = conf_dir(home.root, arguments.conf)
    streams = streams_of(home, conf) if purge and has_streams(conf) else {}
    with _upkeep(home, arguments.engine) as upkeep_of:
        maintained = maintain(
            home, today=today, purge=purge, streams=streams, upkeep_of=upkeep_of
        )
        done = [each.to_json() for each in maintained]
    logs = retain_logs(home, streams, now_us=now_us)
    cleared = clear_leftovers(home, conf, today=today) if purge else Cleared()
    kept = [each.to_json() for each in logs]
    return {"tables": done, "logs": kept, "cleared": asdict(cleared)}


@contextmanager
def _upkeep(home: Home, engine: str) -> Iterator[Callable[[Stored], Upkeep]]:
    """Who keeps each table in order."""
    if engine == "local":
        yield by_delta_rs
        return
    from st_common.spark.session import late_session
    from st_common.spark.upkeep import WRITTEN, SparkUpkeep

    with late_session(home, "fairway maintain") as spark_of:
        by_spark = SparkUpkeep(spark_of)
        yield lambda one: by_spark if one.contract.name in WRITTEN else tables


def _levels(home: Home, arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Flushes `latest` and takes every snapshot that is due, of one stream or of all, also beside a running engine."""
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
    """Parses the command line, maintains the home, gives back the exit code."""
    return finish(maintain_home, job_parser(MAINTAIN).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
