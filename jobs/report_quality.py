"""Checks closed days: `python -m jobs.report_quality --home H [--day D] [--engine local]`, or by spark-submit."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.errors import QualityError
from st_common.processes.entry import finish, job_parser, streams_of
from st_common.programs import REPORT_QUALITY
from st_common.quality.daily import engine_of, report_days


def report_quality(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Checks one day, or every closed day that was not checked, and writes a report and the results of each."""
    home = Home(home_dir(arguments.home))
    streams = streams_of(home, conf_dir(home.root, arguments.conf))
    reports = report_days(
        home,
        streams,
        arguments.day,
        checked_us=time.time_ns() // 1000,
        begin=partial(engine_of, home, arguments.engine),
    )
    return {
        "days": [report.to_json() for report in reports],
        "breaches": sum(report.breaches for report in reports),
    }


def _failure_of(summary: Mapping[str, Any]) -> tuple[int, str]:
    """3 when a rule of severity error is broken, and what that means; or where it is told, of a rule without words."""
    broken = [day for day in summary["days"] if day["breaches"]]
    told = (day["sentences"] or [f"see {day['path']}"] for day in broken)
    return QualityError.exit_code if broken else 0, "; ".join(chain(*told))


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, checks, gives back the exit code: 0, 2, or 3 when a rule of severity error is broken."""
    return finish(
        report_quality,
        job_parser(REPORT_QUALITY).parse_args(argv),
        failure_of=_failure_of,
    )


if __name__ == "__main__":
    sys.exit(main())
