"""One tick of the supervisor: `python -m jobs.supervise --home H --conf C [--reset STREAM]`."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from jobs.entry import finish, job_parser, streams_of
from st_common.delivery.alerting import (
    AlertSettings,
    alert_settings,
    begin_alerting,
    notify,
)
from st_common.delivery.settings import wanted
from st_common.home import Home
from st_common.ops.beats import record_beats
from st_common.ops.decide import by_kind
from st_common.ops.judged import all_healths
from st_common.ops.supervisor import job_supervisor, reset, tick
from st_common.settings import conf_dir, home_dir


def supervise(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Compares the streams and deliveries that should run with what runs, acts, and says what was done."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    deliveries = wanted(conf, streams := streams_of(conf))
    if (alerted := alert_settings(conf)) is not None:
        begin_alerting(home)
    if arguments.reset:
        reset(home, arguments.reset)
    now_us = time.time_ns() // 1000
    done = by_kind(
        tick(job_supervisor(home, conf), streams, now_us=now_us, deliveries=deliveries)
    )
    beats = record_beats(home, streams, now_us=now_us)
    return {
        **all_healths(home, streams, deliveries, now_us=now_us),
        **done,
        "beats": beats,
        "notified": None if alerted is None else _notified(home, alerted),
    }


def _notified(home: Home, settings: AlertSettings) -> Mapping[str, Any]:
    """What became of new alerts, named on stderr where they did not reach their receiver."""
    done = notify(home, settings)
    if done.reason:
        print(f"WRONG: alerts: {done.reason}", file=sys.stderr, flush=True)
    return asdict(done)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, does one tick, gives back the exit code."""
    parser = job_parser("supervise", supervise.__doc__)
    parser.add_argument(
        "--reset", metavar="STREAM", help="let a stream that was given up start again"
    )
    return finish(partial(supervise, parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
