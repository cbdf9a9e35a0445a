"""A SELECT about the past: the step over the archived fixes, with one query that is there before all of them.

    fixes      a 10:00   b 10:05   a 10:10  ..      a day of them at a time, in the order of event time
    AS OF      who is in, folded over the changes of each day
    BETWEEN    stays, folded from the changes of each day

Nothing is kept of it, so each question reads the stream from its first fix on.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from st_common.batch.reprocess import BatchArm, Told
from st_common.batch.searching import searched
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.statements import time_of
from st_common.errors import QueryError
from st_common.history.fold import MEMBERS, fold
from st_common.history.told import begin_of
from st_common.history.visits import MEMBERS as IN_VISITS
from st_common.history.visits import fold_visits, members_at_end
from st_common.operations.days import slowest_clock
from st_common.operators.expressions.fields import shown_columns
from st_common.query.past import Past
from st_common.query.plan import Plan

ANSWER = ("object", "partner", "since_ts", "value", "fields")
"""The columns of an answer at a time."""

VISITS = (
    "object",
    "partner",
    "from_ts",
    "to_ts",
    "value",
    "cause_in",
    "cause_out",
    "fields",
)
"""The columns of visits in an interval."""

_QUERY = "asked"  # its name, while it runs
_MICROSECOND = timedelta(microseconds=1)  # the times that are asked for belong to it


def asked(
    home: Home, stream: StreamSettings, plan: Plan, past: Past | None
) -> Iterator[pa.Table]:
    """What a query would have answered, had it been registered before the first fix of its stream.

    Fixes count in the order of their event times, also those that came too late for the engine. Layers count in the
    versions of the log. Nothing is written, and an engine may run beside it.

        AS OF 10:07                       who was in then                        one table, columns `ANSWER`
        BETWEEN 10:00 AND 11:00           stays in it, cut where days meet       a table for each day, columns `VISITS`

    Who was in when an interval began has come in there, with the cause `day`; who is in at its end has no `to_ts`.
    Memory holds a slice of fixes, who is in, and the changes of a day.

    Args:
        home: where log and tables lie.
        stream: the settings of the stream that the plan is about; of a layer its newest version is asked.
        plan: what is asked.
        past: when; None: the last time of which everything is known.

    Returns:
        Tables with the same columns, one at least. Answers are sorted by object and partner, visits by object, partner
        and time.

    Raises:
        ConfigError: the stream never ran.
        QueryError: the stream has not come to the time, or the plan cannot be judged on its fixes.
        FairwayError: fixes that the answer follows from were purged.
        LogError: a segment is missing or damaged.
    """
    if stream.layer is not None:
        return iter([_in_order(searched(home, stream, plan, past))])
    arm = BatchArm.of(home, stream, Trial(name=_QUERY, queries={_QUERY: plan}))
    last = _checked(home, stream.name, past)
    if past is None or past.since is None:
        return iter([_answer(arm, last + _MICROSECOND)])
    return _visits(arm, past.since, last + _MICROSECOND)


def shows_fields(plan: Plan) -> bool:
    """Whether the `fields` of an answer may have anything in them."""
    return plan.aggregate is not None or bool(shown_columns(plan))


def _checked(home: Home, stream: str, past: Past | None) -> datetime:
    """The last time that is asked about.

    Raises:
        QueryError: fixes of then may still come.
    """
    known = known_until(home, stream)
    if past is None:
        return known
    if past.until > known:
        raise QueryError(
            f"stream {stream!r} has not come to {_written(past.until)} yet",
            hint=f"ask about {_written(known)} or before",
        )
    return past.until


def known_until(home: Home, stream: str) -> datetime:
    """The last time of which everything is known of a stream: the clock of its slowest job.

    Raises:
        QueryError: nothing is known yet.
    """
    known_us = slowest_clock(home, stream)
    if known_us is None:
        raise QueryError(
            f"of stream {stream!r} nothing is known yet",
            hint=f"`fairway run {stream}` first: engine and archive must have read fixes",
        )
    return time_of(known_us)


def _answer(arm: BatchArm, until: datetime) -> pa.Table:
    """Who is in right before a time."""
    members = MEMBERS.empty_table()
    for told in _days(arm, [until]):
        members = _folded(told.changes, members)
    return _in_order(members)


def _in_order(members: pa.Table) -> pa.Table:
    """The columns of an answer, sorted."""
    order = [("object", "ascending"), ("partner", "ascending")]
    return members.select(ANSWER).sort_by(order)


def _visits(arm: BatchArm, since: datetime, until: datetime) -> Iterator[pa.Table]:
    """The stays from `since` to right before `until`, day by day."""
    before, inside = MEMBERS.empty_table(), None
    for told in _days(arm, [since, until]):
        if told.until <= since:
            before = _folded(told.changes, before)
            continue
        if inside is None:
            inside = before.select(IN_VISITS.names).cast(IN_VISITS)
        stays = fold_visits(told.changes, inside, since=told.since, until=told.until)
        inside = members_at_end(stays, told.until)
        yield _shown(stays)
    if inside is None:  # the stream's first fix is later
        none = load_contract("changes").empty_table()
        yield _shown(fold_visits(none, since=since, until=until))


def _folded(changes: pa.Table, members: pa.Table) -> pa.Table:
    """Who is in behind the changes of an interval, given who was in before it.

    The step looks beyond an interval for what is told late, and numbers the rows there, too. The next interval uses
    these numbers again, so positions of two intervals say nothing of which came first: who was in came before.
    """
    column = members.schema.get_field_index("position")
    before = pa.array(np.full(len(members), -1))
    return fold(changes, members.set_column(column, "position", before))


def _shown(stays: pa.Table) -> pa.Table:
    order = [(name, "ascending") for name in ("object", "partner", "from_ts", "to_ts")]
    return stays.select(VISITS).sort_by(order)


def _days(arm: BatchArm, marks: Sequence[datetime]) -> Iterator[Told]:
    """What is told from the stream's first day to the last mark, cut where days meet and at the marks.

    Raises:
        QueryError: the query cannot be judged any more.
        FairwayError: the first fixes were purged.
    """
    border = arm.beginning()
    if border is None:
        return
    yield from judged(arm.told(border, _edges(begin_of(border.day), marks)))


def judged(intervals: Iterator[Told]) -> Iterator[Told]:
    """What is told of intervals, as long as all is judged.

    Raises:
        QueryError: a query cannot be judged any more.
    """
    for told in intervals:
        for failure in told.failures:
            raise QueryError(f"the query cannot be judged: {failure.why}")
        yield told


def _edges(start: datetime, marks: Sequence[datetime]) -> list[datetime]:
    """The start, the marks behind it and all midnights between them, in their order.

    30 April 00:00, marks 30 April 12:00 and 2 May 09:00   ->   30th 00:00, 12:00, 1st 00:00, 2nd 00:00, 09:00
    """
    last = marks[-1]
    days = (last.astimezone(UTC).date() - start.date()).days
    midnights = (start + timedelta(days=day) for day in range(days + 1))
    return sorted({one for one in (*midnights, *marks) if start <= one <= last})


def _written(moment: datetime) -> str:
    """A time for people, with all of its microseconds where it has some."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
