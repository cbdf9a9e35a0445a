"""Partitions a group: `python -m jobs.partition GROUP --home H --strategy sample --share 0.002 --regions 40`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.home import Home
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.settings import conf_dir, home_dir
from st_common.spark.partitioning import partition_group
from st_common.spark.rebalance import thresholds_given


def partition(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Divides space into regions of like load and stores them as the group's next version."""
    home, given = Home(home_dir(arguments.home)), arguments
    conf = conf_dir(home.root, given.conf)
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
    )
    for line in done.left_out:
        print(line, file=sys.stderr, flush=True)
    return done.to_json()


def _number(text: str) -> float | None:
    return float(text) if text else None


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, partitions, gives back the exit code."""
    parser = job_parser("partition", partition.__doc__)
    parser.add_argument("group", help="the group of streams and layers")
    parser.add_argument(
        "--strategy", choices=["sample", "elements", "thresholds"], default="sample"
    )
    parser.add_argument("--upper", type=_number, help="for thresholds: what is split")
    parser.add_argument("--lower", type=_number, help="what is merged")
    parser.add_argument("--unit", choices=["rows", "mb"], default="rows")
    parser.add_argument(
        "--share",
        type=_number,
        help="of the data, for sample; default: .002, and at least 300 rows per region",
    )
    parser.add_argument(
        "--first",
        type=lambda text: int(text or 10_000),
        default=10_000,
        help="rows, for elements",
    )
    parser.add_argument("--regions", type=int, default=40)
    parser.add_argument(
        "--source",
        help="stream:NAME, layer:NAME or a file, several with commas; default: the logs of the group's streams",
    )
    arguments = parser.parse_args(argv)
    return finish(partition, arguments)


if __name__ == "__main__":
    sys.exit(main())
