"""What is read by HTTP: answers, objects, layers, explanations, SQL, the state of streams."""

from base64 import b64encode
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from st_common.client.result import to_stream
from st_common.config.parameters import Parameter
from st_common.config.stream import StreamSettings
from st_common.config.values import flag
from st_common.errors import QueryError
from st_common.programs import BACKTEST
from st_common.server.endpoint import (
    AT,
    BBOX,
    LIMIT,
    NEEDED_STREAM,
    STATEMENTS,
    Endpoint,
)
from st_common.server.page.readers import (
    answer_with_places,
    late_warnings,
    live_places,
)
from st_common.server.parameters import (
    ANY_TEXT,
    Parameters,
    known_query,
    known_stream,
    numbers,
)
from st_common.server.replies import plain_rows, rows_reply, value_reply
from st_common.server.schemas import (
    ANY,
    ANYTHING,
    BOX,
    COUNTS,
    LATE,
    NUMBER,
    ROWS,
    TEXT,
    TEXTS,
    TIME,
    TRUTH,
    WHOLE,
    a_list,
    an_object,
    or_null,
)
from st_common.server.text_limits import areas_of

if TYPE_CHECKING:
    from st_common.answers.history import NearestTo
    from st_common.client.home_client import HomeClient

_ROWS, _MOST_ROWS = 10_000, 1_000_000
_MEMBER = an_object(
    object=TEXT,
    partner=or_null(TEXT),
    since_ts=TIME,
    value=or_null(NUMBER),
    fields=ANYTHING,
    x=or_null(NUMBER),
    y=or_null(NUMBER),
)
_PLACED = an_object(
    {"distance": NUMBER}, object=TEXT, event_ts=TIME, x=NUMBER, y=NUMBER
)
_FAULT = an_object(outcome=TEXT, fid=TEXT, place=TEXT, reason=TEXT)
_LAYER = an_object(
    layer=TEXT,
    version=WHOLE,
    features=WHOLE,
    rows=WHOLE,
    by_kind=COUNTS,
    by_region=COUNTS,
    box=BOX,
    attribution=or_null(TEXT),
    rejected=COUNTS,
    repaired=WHOLE,
    faults=a_list(_FAULT),
)
_EXPLAINED = an_object(query=or_null(TEXT), lines=TEXTS)
_WHY = an_object(
    stream=TEXT,
    change=ANY,
    batch=ANY,
    newest=WHOLE,
    fix=ANYTHING,
    joined=ANYTHING,
    tick=or_null(TIME),
    focals=ANY,
    newcomers=ANY,
    sentence=TEXT,
    filtered=ANYTHING,
    registered=ANYTHING,
)
_VERIFIED = an_object(
    {"position": WHOLE, "members": WHOLE, "fixes": WHOLE, "late": WHOLE},
    query=TEXT,
    missing=WHOLE,
    extra=WHOLE,
    misplaced=WHOLE,
    checked=TRUTH,
    unchecked=or_null(TEXT),
    failed=TRUTH,
    holds=TRUTH,
)
_VERIFIED_ALL = an_object(holds=TRUTH, queries=a_list(_VERIFIED))


@Endpoint(
    "GET",
    "/v1/answers/{query}",
    an_object(LATE, query=TEXT, at=or_null(TIME), rows=a_list(_MEMBER)),
    params=(AT,),
    apart_with={"at": "read"},
)
def answer(asked: Parameters) -> Response:
    """Who is in the answer of a query, now or at a time."""
    from st_common.client.result import placed
    from st_common.query.lookup import find

    query, at = known_query(asked), asked.params.get("at")
    rows = answer_with_places(asked, query, asked.params.get("at"))
    stream = asked.place.stream(find(asked.place.home, query).stream)
    table = placed(rows, stream.crs).table.drop_columns(["x", "y"])
    return rows_reply(asked, table, query=query, at=at, **_late(asked, stream))


@Endpoint(
    "GET",
    "/v1/objects",
    an_object(LATE, stream=TEXT, at=or_null(TIME), rows=a_list(_PLACED)),
    params=(
        NEEDED_STREAM,
        AT,
        BBOX,
        Parameter("near", numbers(3), "x,y,k: the k objects nearest to a point"),
        Parameter(
            "where",
            ANY_TEXT,
            "a condition over attributes, as behind WHERE: speed > 5 AND kind = 'bus'",
        ),
    ),
    apart_with={"at": "read"},
    apart_if_long="read",
)
def objects(asked: Parameters) -> Response:
    """Where the objects of a stream are, or were at a time."""
    stream = known_stream(asked, asked.params["stream"])
    if "at" in asked.params:
        return _objects_then(asked, stream)
    return _objects_now(asked, stream)


def _objects_now(asked: Parameters, stream: StreamSettings) -> Response:
    from st_common.answers.history import Choice, chosen
    from st_common.answers.object_conditions import condition_of
    from st_common.client.result import placed
    from st_common.regions.registry import Box

    home, given = asked.place.home, asked.params
    box, near, where = (given.get(name) for name in ("bbox", "near", "where"))
    if where is not None:
        streams, areas = asked.place.streams(), areas_of(asked, where)
        where = condition_of(home, streams, stream.name, where, areas=areas)
    wanted = Choice(
        inside=None if box is None else Box.of_corners(*box),
        nearest=None if near is None else _nearest_to(*near),
        where=where,
    )
    rows = chosen(home, stream, live_places(asked, stream).current(), wanted)
    table = placed(rows, stream.crs).table
    late = _late(asked, stream)
    return rows_reply(asked, table, stream=stream.name, at=None, **late)


def _late(asked: Parameters, stream: StreamSettings) -> dict[str, list[str]]:
    """The `warnings` of a stream many of whose fixes came too late; nothing of another."""
    from st_common.operations.status import read_status

    said = read_status(asked.place.home.stream(stream.name))
    warnings = late_warnings(asked, stream, said)
    return {"warnings": warnings} if warnings else {}


def _nearest_to(x: float, y: float, k: float) -> "NearestTo":
    from st_common.answers.history import NearestTo

    return NearestTo(k=int(k), x=x, y=y)


def _objects_then(asked: Parameters, stream: StreamSettings) -> Response:
    from st_common import tables

    given = asked.params
    if not tables.exists(asked.place.home.table("positions", stream.name)):
        return value_reply({"stream": stream.name, "at": None, "rows": []})
    near = given.get("near")
    seen = _client(asked).objects(
        stream.name,
        given.get("at"),
        inside=given.get("bbox"),
        nearest=None if near is None else (int(near[2]), near[0], near[1]),
        where=given.get("where"),
    )
    return rows_reply(asked, seen.table, stream=stream.name, at=given.get("at"))


def _client(asked: Parameters) -> "HomeClient":
    from st_common.client.home_client import HomeClient

    return HomeClient(asked.place.home, streams=asked.place.settings())


@Endpoint(
    "GET",
    "/v1/layers",
    an_object(layers=a_list(_LAYER)),
    params=(
        Parameter(
            "all_faults",
            flag,
            "true: all features that were rejected or repaired are named, not ten of each",
        ),
    ),
)
def layers(asked: Parameters) -> Response:
    """All layers, in figures, with what their loads left out."""
    from st_common.layers.faults import SHOWN, shared_out
    from st_common.layers.summary import summaries

    most = None if asked.params.get("all_faults") else SHOWN
    shown = [
        {**asdict(one), "faults": shared_out(one.faults, most=most)}
        for one in summaries(asked.place.home)
    ]
    return value_reply({"layers": shown})


@Endpoint(
    "GET",
    "/v1/explain/{query}",
    _EXPLAINED,
    params=(
        Parameter(
            "analyze",
            flag,
            "true: it runs over the archived fixes, and what goes through is counted",
        ),
    ),
    apart="read",
    apart_with={"analyze": "check"},
)
@Endpoint("POST", "/v1/explain", _EXPLAINED, takes=STATEMENTS, apart="ask")
def explain(asked: Parameters) -> Response:
    """How a query is carried out, or a SELECT would be."""
    client, analyze = _client(asked), bool(asked.params.get("analyze"))
    if "query" in asked.path:
        name, plan = client.plan_of_query(known_query(asked))
    else:
        name, plan = client.plan_of_text(asked.text())
    known_stream(asked, plan.stream)
    lines = client.explain_plan(name, plan, analyze=analyze)
    return value_reply({"query": name, "lines": lines})


@Endpoint(
    "GET",
    "/v1/why/{query}",
    _WHY,
    params=(
        Parameter("object", ANY_TEXT, "the object, or the group", is_required=True),
        Parameter("partner", ANY_TEXT, "only changes with this partner"),
        AT,
    ),
    apart="read",
)
def why(asked: Parameters) -> Response:
    """The newest change of an object in an answer, explained."""
    at, partner = asked.params.get("at"), asked.params.get("partner")
    who = asked.params["object"]
    reason = _client(asked).why(known_query(asked), who, at, partner=partner)
    return value_reply(reason)


@Endpoint("POST", "/v1/verify/{query}", _VERIFIED_ALL, apart="check")
@Endpoint("POST", "/v1/verify", _VERIFIED_ALL, apart="check")
def verify(asked: Parameters) -> Response:
    """One answer, or all, checked by brute force."""
    from st_common.query.lookup import find, queries

    query = known_query(asked) if "query" in asked.path else None
    home = asked.place.home
    for row in queries(home) if query is None else [find(home, query)]:
        known_stream(asked, row.stream)
    verdicts = _client(asked).verify(query)
    return value_reply(
        {"holds": all(one["holds"] for one in verdicts), "queries": verdicts}
    )


@Endpoint(
    "POST",
    "/v1/sql",
    an_object(more=TRUTH, rows=ROWS),
    params=(LIMIT,),
    takes=STATEMENTS,
    apart="ask",
)
def sql(asked: Parameters) -> Response:
    """The rows of one SELECT over the tables; it can only read."""
    from st_common.answers.sql import sql as result_of

    most = min(asked.params.get("limit", _ROWS), _MOST_ROWS)
    rows = result_of(asked.place.home, asked.text(), asked.place.streams, most=most)
    return rows_reply(asked, rows.slice(0, most), more=len(rows) > most)


BACKTEST_KEYS = (
    replace(BACKTEST["stream"], is_required=False),
    replace(BACKTEST["against"], type=ANY_TEXT),
    Parameter("arrow", flag, "tables are streams of Arrow, in base 64"),
)
"""What a JSON body of a backtest has: the statements name a stream, and are no file."""


@Endpoint(
    "POST",
    "/v1/backtest",
    an_object(
        fixes=WHOLE,
        since=ANYTHING,
        until=ANYTHING,
        seconds=NUMBER,
        totals=ANYTHING,
        days=ANYTHING,
        examples=ANYTHING,
    ),
    params=(BACKTEST["days"],),
    takes=STATEMENTS,
    keys=BACKTEST_KEYS,
    apart="check",
)
def backtest(asked: Parameters) -> Response:
    """What registrations would have told on days that are past."""
    text, given = asked.text(), asked.values(BACKTEST_KEYS)
    done = _client(asked).backtest(
        text,
        given.get("stream") or _stream_of(asked, text),
        days=asked.params["days"],
        against=given.get("against"),
    )
    tables = {"totals": done.totals, "days": done.days, "examples": done.examples}
    shown = {
        name: b64encode(to_stream(rows)).decode()
        if given.get("arrow")
        else plain_rows(rows)
        for name, rows in tables.items()
    }
    told = {"fixes": done.fixes, "since": done.since, "until": done.until}
    return value_reply({**told, "seconds": done.seconds, **shown})


def _stream_of(asked: Parameters, text: str) -> str:
    """The one stream that registrations are on."""
    from st_common.query.area_store import HomeAreas
    from st_common.query.text import parse

    statements = parse(text, areas=HomeAreas(asked.place.home, asked.place.streams))
    names = {one.plan.stream for one in statements if one.plan is not None}
    if len(names) != 1:
        raise QueryError("registrations on one stream are tried at a time")
    return names.pop()


def status(asked: Parameters) -> dict[str, Any]:
    """Each stream: its state, how far it is, what it counted, and its sources; and what is wrong with the settings."""
    from st_common.answers.stream_state import state_of

    home, place = asked.place.home, asked.place
    states, known = [], place.streams()
    for name, stream in known.items():
        state = state_of(home, name, wanted=stream.running)
        warnings = late_warnings(asked, stream, state.said)
        states.append(place.without_paths({**state.to_json(), "warnings": warnings}))
    broken = {name: place.hidden(str(one)) for name, one in known.broken.items()}
    error = place.last_good.error
    wrong = None if error is None else place.hidden(str(error))
    return {"streams": states, "broken_streams": broken, "settings_error": wrong}
