"""Spreads layers over the newest regions of their groups: `python -m jobs.spread_layers --home H`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from st_common.home import Home
from st_common.layers.spreading import spread_layers
from st_common.processes.entry import finish, job_parser
from st_common.settings import home_dir


def spread(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Brings each layer's table to the newest regions of its group; tells no stream, `jobs.tell_streams` does."""
    done = spread_layers(Home(home_dir(arguments.home)))
    if done.unknown:
        names = ", ".join(done.unknown)
        print(f"WRONG: load again, of no known group: {names}", file=sys.stderr)
    return asdict(done)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, spreads, gives back the exit code."""
    parser = job_parser("spread_layers", spread.__doc__)
    return finish(spread, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
