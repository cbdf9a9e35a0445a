"""Ticks of the supervisor: `python -m st_common.processes.supervise --home H [--look|--retry STREAM|--every 60]`."""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import Streams
from st_common.delivery.look import look_after
from st_common.errors import ConfigError
from st_common.operations.forgiving import retry
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import SUPERVISE


def supervise(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compares the streams and deliveries that should run with what runs, acts, and says what was done.

    Raises:
        ConfigError: what may start again is named, and the ticks have no end.
    """
    if arguments.every is not None:
        raise ConfigError("--retry and --look are for once", hint="leave --every out")
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = streams_of(home, conf)
    if arguments.retry:
        retry(home, arguments.retry)
    now_us = time.time_ns() // 1000
    done = look_after(home, conf, streams, now_us=now_us, act=not arguments.look)
    if done.notified is not None and done.notified.reason:
        print(f"WRONG: alerts: {done.notified.reason}", file=sys.stderr, flush=True)
    return {**done.told, "late": {} if arguments.look else _late(home, streams)}


def _late(home: Home, streams: Streams) -> Mapping[str, str]:
    """The streams with late fixes for days that were processed; a look, each twenty seconds, does not pay for it."""
    from st_common.batch.due import late_days

    return late_days(home, streams)


def supervise_on(arguments: argparse.Namespace) -> int:
    """Ticks again and again until SIGTERM; a tick that fails is named, and the next one tries again.

    Each is a process of its own: what it starts outlives it, and is reaped by init and not by us.
    """
    stopped = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    given = {"--home": arguments.home, "--conf": arguments.conf}
    options = [str(word) for pair in given.items() if pair[1] for word in pair]
    while True:
        begun_s = time.monotonic()
        tick_of_its_own = [
            sys.executable,
            "-m",
            "st_common.processes.supervise",
            *options,
        ]
        done = subprocess.run(tick_of_its_own, check=False)  # noqa: S603 - ourselves
        if done.returncode == 0 and arguments.beat is not None:
            arguments.beat.touch()
        if stopped.wait(max(arguments.every - (time.monotonic() - begun_s), 0.0)):
            return 0


def run(arguments: argparse.Namespace) -> int:
    """Ticks once, or on and on, as `programs.SUPERVISE` is given it; gives back the exit code."""
    if arguments.every is None or arguments.retry or arguments.look:
        return finish(supervise, arguments, is_told=False)
    return supervise_on(arguments)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, ticks once or on and on, gives back the exit code."""
    return run(job_parser(SUPERVISE).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
