"""All endpoints: their addresses, what they take and give. The API's own description is made from this."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from st_common.server import features, queries, reads
from st_common.server.asked import Asked, Param, numbers_of, time_of, truth_of, whole_of
from st_common.server.bodies import MEDIA

_AT = Param(name="at", about="a time, ISO 8601; else now", read=time_of)
_LIMIT = Param(name="limit", about="at most so many", read=whole_of, kind="integer")
_BBOX = Param(
    name="bbox",
    about="west,south,east,north: only what is in this box",
    read=numbers_of(4),
)
_STREAM = Param(name="stream", about="the stream")
_OFFSET = Param(name="offset", about="from which on", read=whole_of, kind="integer")
_DATETIME = Param(name="datetime", about="as of a time, ISO 8601", read=time_of)
_TEXT = ("text/plain", "application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked for.

    Attributes:
        method: of HTTP.
        path: the address; what stands in braces varies.
        about: what it gives, in one sentence.
        run: carries it out, in a thread; None: it is carried out in the event loop, by `app`.
        params: what may stand behind `?`.
        takes: kinds of bodies; empty: none.
        gives: the kind of answer.
    """

    method: str
    path: str
    about: str
    run: Callable[[Asked], Response] | None = None
    params: tuple[Param, ...] = ()
    takes: tuple[str, ...] = ()
    gives: str = "application/json"


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/streams/{stream}/fixes",
        about="Puts fixes into a stream; 202 once they are durable, with the position of the first.",
        takes=MEDIA,
        params=(
            Param(
                name="live",
                about="false: they are of the past, and time does not go on after them",
                read=truth_of,
                kind="boolean",
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/streams/{stream}/changes",
        about="The changes of all queries on a stream, as they happen.",
        params=(
            Param(name="since", about="from behind this position on", read=whole_of),
        ),
        gives="text/event-stream",
    ),
    Endpoint(
        method="GET",
        path="/changes/{query}",
        about="The changes of a query, as they happen; Last-Event-ID goes on behind a change.",
        params=(
            Param(name="since", about="from behind this position on", read=whole_of),
        ),
        gives="text/event-stream",
    ),
    Endpoint(
        method="GET",
        path="/queries",
        about="All queries that are registered.",
        run=queries.list_queries,
        params=(_STREAM,),
    ),
    Endpoint(
        method="POST",
        path="/queries",
        about="Carries out statements, all or none.",
        run=queries.post_queries,
        takes=_TEXT,
    ),
    Endpoint(
        method="GET",
        path="/queries/{query}",
        about="One query: its text, its plan, its history.",
        run=queries.show_query,
    ),
    Endpoint(
        method="PUT",
        path="/queries/{query}",
        about="Registers a SELECT under a name, or replaces the query of that name.",
        run=queries.put_query,
        takes=_TEXT,
    ),
    Endpoint(
        method="DELETE",
        path="/queries/{query}",
        about="Drops a query.",
        run=queries.delete_query,
    ),
    Endpoint(
        method="GET",
        path="/answers/{query}",
        about="Who is in the answer of a query, now or at a time.",
        run=reads.answer,
        params=(_AT,),
    ),
    Endpoint(
        method="GET",
        path="/objects",
        about="Where the objects of a stream are, or were at a time.",
        run=reads.objects,
        params=(
            _STREAM,
            _AT,
            _BBOX,
            Param(
                name="near",
                about="x,y,k: the k objects nearest to a point",
                read=numbers_of(3),
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/layers",
        about="All layers, in figures.",
        run=reads.layers,
    ),
    Endpoint(
        method="GET",
        path="/explain/{query}",
        about="How a query is carried out.",
        run=reads.explain,
    ),
    Endpoint(
        method="POST",
        path="/explain",
        about="How a SELECT would be carried out.",
        run=reads.explain,
        takes=_TEXT,
    ),
    Endpoint(
        method="GET",
        path="/why/{query}",
        about="The newest change of an object in an answer, explained.",
        run=reads.why,
        params=(
            Param(name="object", about="the object, or the group"),
            Param(name="partner", about="only changes with this partner"),
            _AT,
        ),
    ),
    Endpoint(
        method="POST",
        path="/verify",
        about="All answers, checked by brute force.",
        run=reads.verify,
    ),
    Endpoint(
        method="POST",
        path="/verify/{query}",
        about="One answer, checked by brute force.",
        run=reads.verify,
    ),
    Endpoint(
        method="POST",
        path="/sql",
        about="The rows of one SELECT over the tables; it can only read.",
        run=reads.sql,
        params=(_LIMIT,),
        takes=_TEXT,
    ),
    Endpoint(
        method="POST",
        path="/backtest",
        about="What registrations would have told on days that are past.",
        run=reads.backtest,
        params=(
            Param(name="days", about="so many days", read=whole_of, kind="integer"),
        ),
        takes=_TEXT,
    ),
    Endpoint(
        method="GET",
        path="/status",
        about="Each stream: its state, how far it is, its sources.",
        run=reads.status,
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        about="Metrics, as Prometheus reads them.",
        gives="text/plain",
    ),
    Endpoint(method="GET", path="/openapi.json", about="This description of the API."),
    Endpoint(
        method="GET",
        path="/ogc",
        about="OGC API Features: where to go from here.",
        run=features.landing,
    ),
    Endpoint(
        method="GET",
        path="/ogc/conformance",
        about="Which parts of the standard are carried out.",
        run=features.conformance,
    ),
    Endpoint(
        method="GET",
        path="/ogc/collections",
        about="All collections of features.",
        run=features.collections,
    ),
    Endpoint(
        method="GET",
        path="/ogc/collections/{collection}",
        about="One collection.",
        run=features.collection,
    ),
    Endpoint(
        method="GET",
        path="/ogc/collections/{collection}/items",
        about="Features of a collection.",
        run=features.items,
        params=(_BBOX, _DATETIME, _LIMIT, _OFFSET),
        gives="application/geo+json",
    ),
    Endpoint(
        method="GET",
        path="/ogc/collections/{collection}/items/{feature}",
        about="One feature.",
        run=features.item,
        params=(_DATETIME,),
        gives="application/geo+json",
    ),
)
"""All of them."""
