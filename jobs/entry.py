"""How every job begins and ends: the options of all jobs; a summary or one line of error; an exit code."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from st_common.errors import FairwayError
from st_common.redaction import redacted
from st_common.settings import Streams, load_streams
from st_common.storage import refused


def job_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The command line of `python -m jobs.NAME`, with the options that all jobs have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m jobs.{name}", description=description
    )
    parser.add_argument("--home", help="the home folder; default: FAIRWAY_HOME")
    parser.add_argument(
        "--conf",
        help="the folder of the settings; default: FAIRWAY_CONF, else HOME/conf, else ./conf",
    )
    return parser


def streams_of(conf: Path) -> Streams:
    """The streams that the settings describe; those whose tables are wrong are named on stderr."""
    streams = load_streams(conf)
    for error in streams.broken.values():
        print(f"WRONG: {error}", file=sys.stderr, flush=True)
    return streams


def finish(
    work: Callable[[], Mapping[str, Any]],
    *,
    code_of: Callable[[Mapping[str, Any]], int] = lambda _: 0,
) -> int:
    """Does the work and prints its summary as one line of JSON; gives back the exit code, by default 0.

    An error for people becomes one line on stderr and its own exit code; any other error is a fault of ours, shown with
    its traceback.
    """
    try:
        summary = work()
    except (FairwayError, OSError) as error:
        told = refused(error)
        if not isinstance(told, FairwayError):
            raise
        print(f"error: {redacted(str(told))}", file=sys.stderr, flush=True)
        return told.exit_code
    print(json.dumps(summary), flush=True)
    return code_of(summary)
