"""All endpoints: their addresses, what they take and give.

What lies below `/v1`, and `/metrics`, is promised, and described in OpenAPI; what the page asks, below `/page`, is not.
"""

from st_common.server import ogc, queries, reads
from st_common.server.asked import Param, numbers_of, truth_of, whole_of
from st_common.server.bodies import MEDIA
from st_common.server.endpoint import (
    AT,
    BBOX,
    LIMIT,
    STREAM,
    TEXT,
    Endpoint,
)
from st_common.server.page.endpoints import PAGE_ENDPOINTS

PUBLIC: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/v1/streams/{stream}/fixes",
        about="Puts fixes into a stream; 202 once they are durable, with how many were accepted and rejected.",
        takes=MEDIA,
        params=(
            Param(
                name="live",
                about="false: they are of the past, and time does not go on after them",
                read=truth_of,
                schema={"type": "boolean"},
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/streams/{stream}/changes",
        about="The changes of all queries on a stream, as they happen.",
        params=(
            Param(name="since", about="from behind this position on", read=whole_of),
        ),
        gives="text/event-stream",
    ),
    Endpoint(
        method="GET",
        path="/v1/changes/{query}",
        about="The changes of a query, as they happen; Last-Event-ID goes on behind a change.",
        params=(
            Param(name="since", about="from behind this position on", read=whole_of),
        ),
        gives="text/event-stream",
    ),
    Endpoint(
        method="GET",
        path="/v1/queries",
        about="All queries that are registered.",
        run=queries.list_queries,
        params=(STREAM,),
    ),
    Endpoint(
        method="POST",
        path="/v1/queries",
        about="Carries out statements, all or none.",
        run=queries.post_queries,
        takes=TEXT,
        apart="register",
    ),
    Endpoint(
        method="GET",
        path="/v1/queries/{query}",
        about="One query: its text, its plan, its history.",
        run=queries.show_query,
    ),
    Endpoint(
        method="PUT",
        path="/v1/queries/{query}",
        about="Registers a SELECT under a name, or replaces the query of that name.",
        run=queries.put_query,
        takes=TEXT,
        apart="register",
    ),
    Endpoint(
        method="DELETE",
        path="/v1/queries/{query}",
        about="Drops a query.",
        run=queries.delete_query,
        lane="queries",
    ),
    Endpoint(
        method="GET",
        path="/v1/answers/{query}",
        about="Who is in the answer of a query, now or at a time.",
        run=reads.answer,
        params=(AT,),
        apart_with={"at": "read"},
    ),
    Endpoint(
        method="GET",
        path="/v1/objects",
        about="Where the objects of a stream are, or were at a time.",
        run=reads.objects,
        params=(
            STREAM,
            AT,
            BBOX,
            Param(
                name="near",
                about="x,y,k: the k objects nearest to a point",
                read=numbers_of(3),
            ),
            Param(
                name="where",
                about="a condition over attributes, as behind WHERE: speed > 5 AND kind = 'bus'",
            ),
        ),
        apart_with={"at": "read"},
        apart_if_long="read",
    ),
    Endpoint(
        method="GET",
        path="/v1/layers",
        about="All layers, in figures, with what their loads left out.",
        run=reads.layers,
        params=(
            Param(
                name="all_faults",
                about="true: all features that were rejected or repaired are named, not ten of each",
                read=truth_of,
                schema={"type": "boolean"},
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/explain/{query}",
        about="How a query is carried out.",
        run=reads.explain,
        params=(
            Param(
                name="analyze",
                about="true: it runs over the archived fixes, and what goes through is counted",
                read=truth_of,
                schema={"type": "boolean"},
            ),
        ),
        apart="read",
        apart_with={"analyze": "check"},
    ),
    Endpoint(
        method="POST",
        path="/v1/explain",
        about="How a SELECT would be carried out.",
        run=reads.explain,
        takes=TEXT,
        apart="ask",
    ),
    Endpoint(
        method="GET",
        path="/v1/why/{query}",
        about="The newest change of an object in an answer, explained.",
        run=reads.why,
        params=(
            Param(name="object", about="the object, or the group"),
            Param(name="partner", about="only changes with this partner"),
            AT,
        ),
        apart="read",
    ),
    Endpoint(
        method="POST",
        path="/v1/verify",
        about="All answers, checked by brute force.",
        run=reads.verify,
        apart="check",
    ),
    Endpoint(
        method="POST",
        path="/v1/verify/{query}",
        about="One answer, checked by brute force.",
        run=reads.verify,
        apart="check",
    ),
    Endpoint(
        method="POST",
        path="/v1/sql",
        about="The rows of one SELECT over the tables; it can only read.",
        run=reads.sql,
        params=(LIMIT,),
        takes=TEXT,
        apart="ask",
    ),
    Endpoint(
        method="POST",
        path="/v1/backtest",
        about="What registrations would have told on days that are past.",
        run=reads.backtest,
        apart="check",
        params=(
            Param(
                name="days",
                about="so many days",
                read=whole_of,
                schema={"type": "integer"},
            ),
        ),
        takes=TEXT,
    ),
    Endpoint(
        method="GET",
        path="/v1/status",
        about="Each stream: its state, how far it is, its sources.",
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        about="Metrics, as Prometheus reads them.",
        gives="text/plain",
    ),
    Endpoint(
        method="GET",
        path="/v1/openapi.json",
        about="This description of the API.",
        gives=ogc.OPENAPI,
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc",
        about="OGC API Features: where to go from here.",
        run=ogc.landing,
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc/conformance",
        about="Which parts of the standard are carried out.",
        run=ogc.conformance,
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc/collections",
        about="All collections of features.",
        run=ogc.collections,
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc/collections/{collection}",
        about="One collection.",
        run=ogc.collection,
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc/collections/{collection}/items",
        about="Features of a collection.",
        run=ogc.items,
        apart="read",
        params=(ogc.BBOX, ogc.DATETIME, ogc.LIMIT, ogc.OFFSET),
        gives="application/geo+json",
    ),
    Endpoint(
        method="GET",
        path="/v1/ogc/collections/{collection}/items/{feature}",
        about="One feature.",
        run=ogc.item,
        apart="read",
        params=(ogc.DATETIME,),
        gives="application/geo+json",
    ),
)
"""Those that are promised."""

ENDPOINTS = (*PUBLIC, *PAGE_ENDPOINTS)
"""All of them."""
