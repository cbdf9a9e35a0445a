"""Processes closed days again: `python -m jobs.reprocess --home H [STREAM] --from T --to T`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.processes.tasks import reprocess
from st_common.programs import REPROCESS


def process_again(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Processes days of one stream again, or of all for which they are closed, also beside a running engine.

    Raises:
        ConfigError: there is no such stream, or nothing lies between the two times.
    """
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    note, again, failed = reprocess(home, streams, arguments)
    done = {name: one.to_json() for name, one in again.items()}
    told = {"streams": done, **({"note": note} if note else {})}
    if arguments.stream:
        return told
    for name, why in failed.items():
        print(f"FAILED: {name}: {why}", file=sys.stderr, flush=True)
    still_open = [name for name in streams if name not in {*done, *failed}]
    return {**told, "open": still_open, "failed": failed}


def exit_code(summary: Mapping[str, Any]) -> int:
    """2 when a stream could not be processed: those behind it were."""
    return 2 if summary.get("failed") else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, processes the days, gives back the exit code."""
    return finish(
        process_again, job_parser(REPROCESS).parse_args(argv), code_of=exit_code
    )


if __name__ == "__main__":
    sys.exit(main())
