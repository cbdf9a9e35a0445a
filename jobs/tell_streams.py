"""Tells streams which versions of layers count from here on: `python -m jobs.tell_streams --home H --conf C`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.home import Home
from st_common.layers.announce import announce
from st_common.processes.entry import finish, job_parser
from st_common.query.created_streams import known_streams
from st_common.query.layer_following import follow_layers, names_of
from st_common.settings import conf_dir, home_dir


def tell(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Writes the newest version of each layer into the logs that do not name it, and takes queries over to it."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    told = announce(home)
    rows = follow_layers(home, lambda: known_streams(home, conf))
    streams = sorted({one.stream for one in told})
    return {"streams": streams, **names_of(rows)}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, tells, gives back the exit code."""
    parser = job_parser("tell_streams", tell.__doc__)
    return finish(tell, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
