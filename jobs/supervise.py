"""One tick of the supervisor: `python -m jobs.supervise --home H --conf C [--reset STREAM]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jobs.entry import finish
from st_common.home import Home
from st_common.ops.decide import ActionKind
from st_common.ops.supervisor import Engines, Supervisor, engine_command, healths, reset, tick
from st_common.settings import conf_dir, home_dir, load_streams


def supervise(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compares what should run with what runs, acts, and says what was done."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = load_streams(conf)
    if arguments.reset:
        reset(home, arguments.reset)
    engines = Engines(command=lambda stream: engine_command(home, conf, stream), cwd=Path(__file__).parents[1])
    now_us = time.time_ns() // 1000
    actions = tick(Supervisor(home=home, engines=engines), streams, now_us=now_us)
    alerts = [{"stream": a.stream, "level": a.level, "text": a.reason} for a in actions if a.kind is ActionKind.ALERT]
    done = [asdict(action) for action in actions if action.kind is not ActionKind.ALERT]
    return {"streams": healths(home, streams, now_us=now_us), "actions": done, "alerts": alerts}


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, does one tick, gives back the exit code."""
    parser = argparse.ArgumentParser(prog="jobs.supervise", description=supervise.__doc__)
    parser.add_argument("--home")
    parser.add_argument("--conf")
    parser.add_argument("--reset", metavar="STREAM", help="let a stream that was given up start again")
    arguments = parser.parse_args(argv)
    return finish(lambda: supervise(arguments))


if __name__ == "__main__":
    sys.exit(main())
