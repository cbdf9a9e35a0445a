"""Where the members of an answer are."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from st_common.errors import QueryError
from st_common.home import Home
from st_common.query.lookup import find
from st_common.query.plan import Plan
from st_common.serving.history import objects_at
from st_common.serving.places import place_of
from st_common.settings import StreamSettings, stream_of

_Place = tuple[float, float]


def with_member_places(
    home: Home,
    streams: Mapping[str, StreamSettings],
    query: str,
    rows: pa.Table,
    at: datetime | None,
) -> pa.Table:
    """The rows of an answer with two columns more, `x` and `y`: where each object is.

    That is the last archived fix of the object; else what the query selects as x and y, which is where it was when it
    came. Groups, and the rows of windows, each of which is a fix of its own, have what is selected alone.

    Args:
        home: where the tables lie.
        streams: the settings of all streams.
        query: the query's name.
        rows: its answer, as `serving.answers` gives it.
        at: the time of the answer; None: now.
    """
    row = find(home, query)
    told = [place_of(text) for text in rows["fields"].to_pylist()]
    by_object: Mapping[str, _Place] = {}
    plan = row.plan
    if plan is None or (_is_about_objects(plan) and plan.frame is None):
        by_object = _last_places(home, stream_of(streams, row.stream), at)
    names = rows["object"].to_pylist()
    places = [
        by_object.get(name, place) for place, name in zip(told, names, strict=True)
    ]
    for number, name in enumerate("xy"):
        values = [None if place is None else place[number] for place in places]
        rows = rows.append_column(name, pa.array(values, pa.float64()))
    return rows


def _last_places(
    home: Home, stream: StreamSettings, at: datetime | None
) -> Mapping[str, _Place]:
    try:
        seen = objects_at(home, stream, at).rows
    except QueryError:  # nothing is archived yet
        return {}
    x, y = (seen[name].to_pylist() for name in "xy")
    return dict(zip(seen["object"].to_pylist(), zip(x, y, strict=True), strict=True))


def _is_about_objects(plan: Plan) -> bool:
    """Whether what a query tells is about objects, and not about groups of them."""
    outer = plan.outer
    return plan.aggregate is None and (outer is None or outer.aggregate is None)
