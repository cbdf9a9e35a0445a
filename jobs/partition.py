"""Partitions a group: `python -m jobs.partition GROUP --home H --strategy sample --share 0.002 --regions 40`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.home import Home
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import PARTITION
from st_common.serving.regions_page import write_regions_page
from st_common.settings import conf_dir, home_dir
from st_common.spark.partitioning import engine_of, partition_group
from st_common.spark.rebalance import thresholds_given


def partition(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Divides space into regions of like load, stores them as the group's next version, and draws them."""
    home, given = Home(home_dir(arguments.home)), arguments
    conf = conf_dir(home.root, given.conf)
    with engine_of(home, given.group, given.engine, given.tree) as engine:
        done = partition_group(
            home,
            conf,
            list(streams_of(home, conf).values()),
            given.group,
            given.source,
            strategy=given.strategy,
            regions=given.regions,
            share=given.share,
            elements=given.first,
            thresholds=thresholds_given(given.upper, given.lower, given.unit),
            engine=engine,
        )
    for line in done.left_out:
        print(line, file=sys.stderr, flush=True)
    picture = write_regions_page(home, given.group)
    return {**done.to_json(), "path": str(picture)}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, partitions, gives back the exit code."""
    return finish(partition, job_parser(PARTITION).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
