"""Processes closed days again: `python -m jobs.reprocess --home H --from T --to T [--stream S]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.batch.days import Again, WholeDays, engine_of, whole_days
from st_common.batch.reprocess import reprocess
from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.errors import FairwayError
from st_common.operations.days import is_closed_before
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import REPROCESS
from st_common.storage import refused


def process_again(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Processes days of one stream again, or of all for which they are closed, also beside a running engine.

    Raises:
        ConfigError: there is no such stream, or nothing lies between the two times.
    """
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    days = whole_days(arguments.from_, arguments.to)
    note = {"note": days.note} if days.note else {}
    if arguments.stream:
        named = stream_of(streams, arguments.stream)
        again = _reprocess(home, named, days, arguments.engine)
        return {"streams": {named.name: again.to_json()}, **note}
    closed = [name for name in streams if is_closed_before(home, name, days.until)]
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in closed:
        try:
            again = _reprocess(home, streams[name], days, arguments.engine)
            done[name] = again.to_json()
        except (FairwayError, OSError) as error:
            failed[name] = redacted(str(refused(error)))
            print(f"FAILED: {name}: {failed[name]}", file=sys.stderr, flush=True)
    still_open = [name for name in streams if name not in closed]
    return {"streams": done, "open": still_open, "failed": failed, **note}


def _reprocess(
    home: Home, stream: StreamSettings, days: WholeDays, engine: str | None
) -> Again:
    if engine_of(home, stream.name, engine) == "local":
        return reprocess(home, stream, days.since, days.until)
    from st_common.spark.batch_days import reprocess_on_spark

    return reprocess_on_spark(home, stream, days.since, days.until)


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
