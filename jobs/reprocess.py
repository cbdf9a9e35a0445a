"""Processes closed days again: `python -m jobs.reprocess --home H [STREAM] [--from T --to T] [--plan]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.processes.entry import failed_parts, finish, job_parser, streams_of
from st_common.processes.tasks import reprocess
from st_common.programs import REPROCESS


def process_again(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Processes days of one stream again, or of all for which they are closed, also beside a running engine.

    Raises:
        ConfigError: there is no such stream, or nothing lies between the two times.
    """
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    again = reprocess(home, streams, arguments)
    plan = again.plan.to_json()
    note = {"note": again.note} if again.note else {}
    if arguments.plan:
        return plan | note
    for name, why in again.failed.items():
        print(f"FAILED: {name}: {why}", file=sys.stderr, flush=True)
    told = {key: plan[key] for key in ("left_out", "behind_segments") if plan.get(key)}
    return {
        "streams": {name: one.to_json() for name, one in again.done.items()},
        "open": plan["open"],
        "failed": dict(again.failed),
        **told,
        **note,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, processes the days, gives back the exit code."""
    return finish(
        process_again, job_parser(REPROCESS).parse_args(argv), failure_of=failed_parts
    )


if __name__ == "__main__":
    sys.exit(main())
