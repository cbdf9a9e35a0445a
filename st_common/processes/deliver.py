"""Delivers changes until it is asked to stop: `python -m st_common.processes.deliver NAME --home H [--until-idle]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.delivery.deliver import deliver as deliver_to
from st_common.delivery.feeders import feed, feeders_of
from st_common.delivery.settings import delivery_of
from st_common.operations.status import failure_recorded
from st_common.processes.entry import finish, job_parser
from st_common.programs import DELIVER
from st_common.query.created_streams import known_streams


def deliver(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Hands the changes of a stream to its receiver, a stream or what the settings name, from where it ended before."""
    home = Home(home_dir(arguments.home))
    with failure_recorded(home.delivery(arguments.delivery)):
        return _deliver(arguments, home)


def _deliver(arguments: argparse.Namespace, home: Home) -> Mapping[str, Any]:
    conf = conf_dir(home.root, arguments.conf)
    streams = known_streams(home, conf)
    fed = feeders_of(streams).get(arguments.delivery)
    if fed is not None:
        return feed(home, fed, streams, until_idle=arguments.until_idle).to_json()
    delivery = delivery_of(conf, streams, arguments.delivery)
    return deliver_to(home, delivery, until_idle=arguments.until_idle).to_json()


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, delivers, gives back the exit code: 0, 2, 4 or 75."""
    return finish(deliver, job_parser(DELIVER).parse_args(argv), is_told=False)


if __name__ == "__main__":
    sys.exit(main())
