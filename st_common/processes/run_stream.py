"""Runs a stream's engine until it is asked to stop: `python -m jobs.run_stream STREAM --home H [--until-idle]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import stream_of
from st_common.extras import require_engine
from st_common.lineage.telling import telling_stream
from st_common.operations.status import failure_recorded
from st_common.processes.entry import finish, job_parser
from st_common.programs import RUN_STREAM
from st_common.query.created_streams import known_streams


def run_stream(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Runs the stream with the engine that is asked for, or else the one of its settings; imports only that one."""
    home = Home(home_dir(arguments.home))
    with failure_recorded(home.stream(arguments.stream)):
        return _run(arguments, home)


def _run(arguments: argparse.Namespace, home: Home) -> Mapping[str, Any]:
    conf = conf_dir(home.root, arguments.conf)
    stream = stream_of(known_streams(home, conf), arguments.stream)
    engine = arguments.engine or stream.engine
    require_engine(engine, stream.name)
    if engine == "spark":
        from st_common.spark.resident import run
    else:
        from st_common.engine.run import run
    with telling_stream(home, conf, stream.name):
        return run(home, stream, until_idle=arguments.until_idle).to_json()


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, runs the stream, gives back the exit code: 0, 2, 4 or 75."""
    return finish(run_stream, job_parser(RUN_STREAM).parse_args(argv), is_told=False)


if __name__ == "__main__":
    sys.exit(main())
