"""How every job begins and ends: the options of all jobs; a summary or one line of error; an exit code."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from st_common.config.environment import conf_dir, home_dir, take_outcome_file
from st_common.config.home import Home
from st_common.config.parameters import Program
from st_common.config.redaction import redacted
from st_common.config.streams import Streams
from st_common.errors import FairwayError, QualityError, one_line
from st_common.extras import missing, of_spark
from st_common.lineage.telling import Ending, telling
from st_common.log_lines import log_in_lines
from st_common.programs import PLACES
from st_common.query.created_streams import known_streams
from st_common.storage import refused

_ABOUT = ("stream", "layer", "group")


def job_parser(program: Program) -> argparse.ArgumentParser:
    """The command line of a program, with the options that all have."""
    log_in_lines()
    return replace(program, parameters=(*PLACES, *program.parameters)).parser()


def streams_of(home: Home, conf: Path) -> Streams:
    """The streams of the settings and those that were created; those whose tables are wrong are named on stderr."""
    streams = known_streams(home, conf)
    for error in streams.broken.values():
        print(f"WRONG: {one_line(str(error))}", file=sys.stderr, flush=True)
    return streams


def finish(
    work: Callable[[argparse.Namespace], Mapping[str, Any]],
    arguments: argparse.Namespace,
    *,
    failure_of: Callable[[Mapping[str, Any]], tuple[int, str]] = lambda _: (0, ""),
    is_told: bool = True,
) -> int:
    """Does the work and prints its summary as one line of JSON; gives back the exit code, by default 0.

    An error for people becomes one line on stderr and its own exit code; any other error is a fault of ours, shown with
    its traceback.

    Args:
        work: gives the summary.
        arguments: the command line, by a parser that `job_parser` began; given to `work`.
        failure_of: the exit code that goes with a summary, and why it is not 0, for people: what Airflow's task and the
            note of its run say.
        is_told: the run is one of those that lineage tells of.
    """
    outcome = take_outcome_file()
    try:
        with telling_of(arguments) if is_told else nullcontext(Ending()) as ending:
            summary = work(arguments)
            code, why = failure_of(summary)
            if code != QualityError.exit_code:
                ending.failure = why
    except Exception as error:
        told = of_spark(missing(refused(error)))
        if not isinstance(told, FairwayError):
            raise
        why = one_line(redacted(str(told)))
        print(f"error: {why}", file=sys.stderr, flush=True)
        _leave(outcome, told.exit_code, error=why)
        return told.exit_code
    print(json.dumps(summary), flush=True)
    failure = {"error": one_line(redacted(why))} if why else {}
    _leave(outcome, code, summary=summary, **failure)
    return code


def failed_parts(summary: Mapping[str, Any]) -> tuple[int, str]:
    """2 and why, when a stream or a group failed at its work: those behind it were done."""
    failed = summary.get("failed", {})
    return 2 if failed else 0, "; ".join(f"{name}: {failed[name]}" for name in failed)


def _leave(path: Path | None, code: int, **told: object) -> None:
    """Leaves how a job ended where Airflow reads it: what spark-submit prints and gives back is not the job's alone."""
    if path is not None:
        path.write_text(json.dumps({"code": code, **told}))


def telling_of(arguments: argparse.Namespace) -> AbstractContextManager[Ending]:
    """Tells lineage of a run: by the job, and by what it is about where that is one stream, layer or group.

    Who only plans reads and writes nothing, and is no run.
    """
    if getattr(arguments, "plan", False):
        return nullcontext(Ending())
    home = Home(home_dir(arguments.home))
    given = (getattr(arguments, name, None) for name in _ABOUT)
    about = next(filter(None, given), ())
    names = (about,) if isinstance(about, str) else about
    name = ".".join((arguments.job, *names))
    return telling(home, conf_dir(home.root, arguments.conf), name)
