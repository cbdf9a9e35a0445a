"""Where the members of an answer are."""

from collections.abc import Callable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from st_common.answers.answers import answered
from st_common.answers.history import archived_at
from st_common.answers.places import place_of
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.query.lookup import find
from st_common.query.plan import Plan

Now = Callable[[StreamSettings], pa.Table]
"""Gives where the objects of a stream are now, as rows with object, x and y."""


def placed_answer(
    home: Home,
    streams: Mapping[str, StreamSettings],
    query: str,
    at: datetime | None = None,
    *,
    now: Now | None = None,
) -> pa.Table:
    """The answer of a query with two columns more, `x` and `y`: where each object is.

    That is the last fix of the object; else what the query selects as x and y, which is where it was when it came.
    Groups, and the rows of windows, each of which is a fix of its own, have what is selected alone.

    Args:
        home: where the tables lie.
        streams: the settings of all streams.
        query: the query's name.
        at: the time of the answer; None: now.
        now: who knows better than the archive where objects are now.

    Returns:
        Rows of `answers.answers.ANSWER`, by object and partner, and x and y (float64, null where nothing is known).

    Raises:
        QueryError: no query was ever registered by that name.
    """
    row, rows = find(home, query), answered(home, query, at).rows
    if row.plan is not None and not _is_about_objects(row.plan):
        return _with_places(rows, None)
    stream = stream_of(streams, row.stream)
    if at is None and now is not None:
        return _with_places(rows, now(stream))
    return _with_places(rows, archived_at(home, stream, at))


def _with_places(rows: pa.Table, seen: pa.Table | None) -> pa.Table:
    told = [place_of(text) or (None, None) for text in rows["fields"].to_pylist()]
    at = None
    if seen is not None and len(seen):
        at = pc.index_in(rows["object"], seen["object"].combine_chunks())
    for number, name in enumerate("xy"):
        places = pa.array([place[number] for place in told], pa.float64())
        if seen is not None and at is not None:
            places = pc.coalesce(seen[name].take(at), places)
        rows = rows.append_column(name, places)
    return rows


def _is_about_objects(plan: Plan) -> bool:
    """Whether what a query tells is about objects, each once: not about groups of them, or rows of windows."""
    outer = plan.outer
    is_grouped = plan.aggregate is not None or (
        outer is not None and outer.aggregate is not None
    )
    return not is_grouped and plan.frame is None
