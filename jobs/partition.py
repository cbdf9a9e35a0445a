"""Partitions a group: `python -m jobs.partition GROUP --home H --strategy sample --share 0.002 --regions 40`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from st_common.answers.regions_page import write_regions_page
from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.partitioning.store import current
from st_common.partitioning.store import groups_between_thresholds as groups
from st_common.processes.entry import failed_parts, finish, job_parser, streams_of
from st_common.processes.partitioning import (
    engine_of,
    follow_regions,
    partition_as,
    rebalance_groups,
)
from st_common.programs import PARTITION


def partition(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Divides space into regions of like load, stores them, draws them, and brings layers to them."""
    home, given = Home(home_dir(arguments.home)), arguments
    conf = conf_dir(home.root, given.conf)
    if given.rebalance:
        return _rebalanced(home, given)
    streams = list(streams_of(home, conf).values())
    with engine_of(home, given.group, given.engine, given.tree) as engine:
        done = partition_as(home, conf, streams, given, engine)
    for line in done.left_out:
        print(line, file=sys.stderr, flush=True)
    picture = write_regions_page(home, given.group)
    layers = _followed(home, conf)
    return {**done.to_json(), "layers": layers, "path": str(picture)}


def _followed(home: Home, conf: Path) -> Mapping[str, Any]:
    """Brings layers to the new regions, and to those of a run before that was killed."""
    layers = follow_regions(home, lambda: streams_of(home, conf))
    if layers["unknown"]:
        names = ", ".join(layers["unknown"])
        print(f"WRONG: load again, of no known group: {names}", file=sys.stderr)
    return layers


def _rebalanced(home: Home, given: argparse.Namespace) -> Mapping[str, Any]:
    """Keeps all groups that have thresholds between them, and draws those whose regions are others now."""
    conf = conf_dir(home.root, given.conf)
    before = {name: current(home, name).version for name in groups(home)}
    with engine_of(home, "all groups", given.engine) as engine:
        streams = list(streams_of(home, conf).values())
        done, failed = rebalance_groups(home, conf, streams, engine)
    changed = [name for name in done if done[name].version != before[name]]
    for name in changed:
        write_regions_page(home, name)
    for name, why in failed.items():
        print(f"FAILED: {name}: {why}", file=sys.stderr, flush=True)
    told = {name: one.to_json() for name, one in done.items()}
    layers = _followed(home, conf)
    return {"groups": told, "changed": changed, "failed": failed, "layers": layers}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, partitions, gives back the exit code."""
    arguments = job_parser(PARTITION).parse_args(argv)
    return finish(partition, arguments, failure_of=failed_parts)


if __name__ == "__main__":
    sys.exit(main())
