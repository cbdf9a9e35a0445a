"""`EXPLAIN ANALYZE`: a query run alone over the archived fixes, to count what goes through its operators (SPEC G10).

archived fixes -> the step, with this query alone -> its counters, and the rows that it would have told
"""

import time
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from st_common.batch.asking import judged, known_until
from st_common.batch.reprocess import BatchArm
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.history.told import begin_of
from st_common.operators.runtime.sharing import operator_of
from st_common.operators.turn.part import Counters
from st_common.query.explain_actual import Actual
from st_common.query.lookup import queries
from st_common.query.plan import Plan

_QUERY = "analyzed"  # its name, while it runs


def analyzed(home: Home, stream: StreamSettings, plan: Plan, name: str) -> Actual:
    """What is counted when a query runs alone over all archived fixes of its stream, in the order of their times.

    Nothing is written, and an engine may run beside it. It takes as long as processing these fixes again; memory holds
    a block of fixes and the rows that are told.

    Args:
        home: where log and tables lie.
        stream: the settings of the plan's stream.
        plan: what is run; its `order` says which of selection and region comes first.
        name: that of its query, empty for one that is not registered.

    Raises:
        ConfigError: the stream never ran.
        QueryError: nothing is known of the stream yet, or the plan cannot be judged on its fixes.
        FairwayError: fixes were purged.
        LogError: a segment is missing or damaged.
    """
    arm = BatchArm.of(home, stream, Trial(name=_QUERY, queries={_QUERY: plan}))
    # Behind that time lie the fixes of the lateness, and none behind these.
    lateness = timedelta(seconds=stream.lateness_s, microseconds=1)
    until = known_until(home, stream.name) + lateness
    began_s = time.process_time()
    counters, signs = _run(arm, until)
    cpu_s = time.process_time() - began_s
    operator, sharing = operator_of(plan, _others(home, stream.name, name))
    dropped = counters.late + counters.double + sum(counters.filtered.values())
    return Actual(
        fixes=counters.fixes,
        located=counters.fixes - dropped,
        probed=counters.probed,
        matched=counters.matched,
        satisfied=counters.stays + counters.enters,
        ticks=counters.ticks,
        touched=counters.touched,
        came=_count(signs, 1),
        went=_count(signs, -1),
        told_again=_count(signs, 0),
        cpu_s=cpu_s,
        operator=operator,
        sharing=sharing,
    )


def _run(arm: BatchArm, until: datetime) -> tuple[Counters, pa.ChunkedArray]:
    """What the step counted up to a time, and the signs of the rows that it told; nothing of a stream without fixes."""
    border = arm.beginning()
    if border is None:
        return Counters(), pa.chunked_array([], pa.int8())
    edges = [begin_of(border.day), until]
    (told,) = judged(arm.told(border, edges))
    if told.counters is None:
        raise AssertionError("fixes that are folded in this process are counted")
    return told.counters, told.changes["sign"]


def _count(signs: pa.ChunkedArray, sign: int) -> int:
    count: int | None = pc.sum(pc.equal(signs, sign)).as_py()
    return count or 0


def _others(home: Home, stream: str, name: str) -> list[Plan]:
    """The plans of all other live queries of a stream."""
    rows = queries(home, [stream])
    return [row.plan for row in rows if row.name != name and row.plan is not None]
