"""Queries by HTTP: what there are, registered, replaced, dropped."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from st_common.client.interface import is_select
from st_common.config.home import Home
from st_common.config.parameters import Parameter
from st_common.config.values import number
from st_common.errors import QueryError
from st_common.query.control import QueryRow
from st_common.query.leases import LEAST_S, MOST_S, end_lease, leasing, renew_lease
from st_common.server.endpoint import STATEMENTS, STREAM, Endpoint
from st_common.server.parameters import AbsentError, Parameters, known_query
from st_common.server.replies import value_reply
from st_common.server.schemas import (
    ANYTHING,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    a_list,
    an_object,
    or_null,
)

if TYPE_CHECKING:
    from st_common.query.registry import Outcome

OWNER = "http"
_RENEWED = an_object(lease=TEXT)
_LEASE = an_object(id=TEXT, lease_s=NUMBER)
_DONE = an_object(
    {"lease": _LEASE},
    queries=a_list(an_object(action=TEXT, name=TEXT, version=WHOLE, position=WHOLE)),
    areas_created=TEXTS,
    areas_replaced=TEXTS,
    areas_dropped=TEXTS,
    streams_created=TEXTS,
    streams_dropped=TEXTS,
    tables_created=TEXTS,
    tables_dropped=TEXTS,
    notices=TEXTS,
)
_QUERY: Mapping[str, Schema] = {
    "name": TEXT,
    "version": WHOLE,
    "stream": TEXT,
    "owner": or_null(TEXT),
    "state": TEXT,
    "text": or_null(TEXT),
    "why": or_null(TEXT),
}
_HISTORY = an_object(action=TEXT, version=WHOLE, position=WHOLE, why=or_null(TEXT))


@Endpoint(
    "GET",
    "/v1/queries",
    an_object(queries=a_list(an_object(**_QUERY))),
    params=(STREAM,),
)
def list_queries(asked: Parameters) -> Response:
    """All queries that are registered."""
    from st_common.query.lookup import queries

    stream = asked.params.get("stream")
    rows = queries(asked.place.home, None if stream is None else [stream])
    return value_reply({"queries": [_shown(row) for row in rows]})


@Endpoint(
    "GET",
    "/v1/queries/{query}",
    an_object(
        **_QUERY,
        plan=ANYTHING,
        canonical=or_null(TEXT),
        history=a_list(_HISTORY),
    ),
)
def show_query(asked: Parameters) -> Response:
    """One query: its text, its plan, its history."""
    from st_common.query.lookup import find, history
    from st_common.query.text import to_text

    row = find(asked.place.home, known_query(asked))
    versions = [
        {
            "action": one.op,
            "version": one.version,
            "position": one.position,
            "why": one.why,
        }
        for one in history(asked.place.home, row.name)
    ]
    plan = None if row.plan is None else row.plan.to_json()
    canonical = None if row.plan is None else to_text(row.plan, row.name)
    more = {"plan": plan, "canonical": canonical, "history": versions}
    return value_reply({**_shown(row), **more})


EPHEMERAL = Parameter(
    "ephemeral",
    number(least=LEAST_S, most=MOST_S),
    "seconds: the queries are dropped once `PUT /v1/leases/ID` was not asked for so long",
)


@Endpoint(
    "POST",
    "/v1/queries",
    {200: _DONE, 201: _DONE},
    params=(EPHEMERAL,),
    takes=STATEMENTS,
    apart="register",
)
def post_queries(asked: Parameters) -> Response:
    """Carries out statements, all or none."""
    return value_reply(_carried_out(asked, asked.text()), 201)


@Endpoint(
    "PUT",
    "/v1/queries/{query}",
    {200: _DONE, 201: _DONE},
    params=(EPHEMERAL,),
    takes=STATEMENTS,
    apart="register",
)
def put_query(asked: Parameters) -> Response:
    """Registers a SELECT under a name, or replaces the query of that name."""
    from st_common.query.area_store import HomeAreas
    from st_common.query.grammar.words import quoted
    from st_common.query.registry import fitted
    from st_common.query.text import select_of

    name, sent, home = asked.path["query"], asked.text(), asked.place.home
    if not is_select(sent):
        raise QueryError(
            "the body must be a SELECT", hint="POST /v1/queries takes all statements"
        )
    # What is wrong stands at a place in what was sent, not in the statement that is made of it.
    fitted(
        home,
        asked.place.streams(),
        [select_of(sent, areas=HomeAreas(home, asked.place.streams))],
    )
    text = sent.strip().rstrip(";")
    is_new = asked.headers.get("if-none-match") == "*" or not _is_live(asked, name)
    verb = "REGISTER" if is_new else "REPLACE"
    done = _carried_out(asked, f"{verb} QUERY {quoted(name)} AS {text}")
    return value_reply(done, 201 if is_new else 200)


def _is_live(asked: Parameters, name: str) -> bool:
    from st_common.query.lookup import find

    try:
        return find(asked.place.home, name).live
    except QueryError:
        return False


@Endpoint("DELETE", "/v1/queries/{query}", _DONE, lane="queries")
def delete_query(asked: Parameters) -> Response:
    """Drops a query."""
    from st_common.query.grammar.words import quoted

    name = known_query(asked)
    return value_reply(_carried_out(asked, f"DROP QUERY {quoted(name)}"))


@Endpoint("PUT", "/v1/leases/{lease}", _RENEWED, lane="queries")
def put_lease(asked: Parameters) -> Response:
    """Renews the lease of ephemeral queries: it holds for its whole time again."""
    return _about_lease(asked, renew_lease)


@Endpoint("DELETE", "/v1/leases/{lease}", _RENEWED, lane="queries")
def delete_lease(asked: Parameters) -> Response:
    """Ends a lease: its queries are dropped within seconds."""
    return _about_lease(asked, end_lease)


def _about_lease(asked: Parameters, act: Callable[[Home, str], None]) -> Response:
    try:
        act(asked.place.home, asked.path["lease"])
    except QueryError as error:
        raise AbsentError(error.message, hint=error.hint) from None
    return value_reply({"lease": asked.path["lease"]})


def _carried_out(asked: Parameters, text: str) -> dict[str, Any]:
    """Carries out statements; what they did.

    Raises:
        TextError: what is wrong with them, with places; nothing is done.
    """
    from st_common.engine.carrying_out import carry_out
    from st_common.query.area_store import HomeAreas
    from st_common.query.text import parse

    home, streams = asked.place.home, asked.place.streams()
    statements = parse(text, areas=HomeAreas(home, lambda: streams))
    if not statements:
        raise QueryError("there is no statement", hint="REGISTER QUERY name AS SELECT")
    with leasing(home, asked.params.get("ephemeral")) as lease:
        done = carry_out(
            home,
            streams,
            statements,
            owner=OWNER,
            before_writing=asked.before_writing,
            lease=lease,
        )
    return _done(done.outcome) | ({} if lease is None else {"lease": asdict(lease)})


def _done(done: "Outcome") -> dict[str, Any]:
    """What statements did."""
    queries = [
        {
            "action": row.op,
            "name": row.name,
            "version": row.version,
            "position": row.position,
        }
        for row in done.rows
    ]
    return {
        "queries": queries,
        "areas_created": list(done.created),
        "areas_replaced": list(done.replaced),
        "areas_dropped": list(done.removed),
        "streams_created": list(done.streams_created),
        "streams_dropped": list(done.streams_dropped),
        "tables_created": list(done.tables_created),
        "tables_dropped": list(done.tables_dropped),
        "notices": [str(notice) for notice in done.notices],
    }


def _shown(row: QueryRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "stream": row.stream,
        "owner": row.owner,
        "state": row.state,
        "text": row.text,
        "why": row.why,
    }
