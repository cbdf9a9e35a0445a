"""What is read by HTTP: answers, objects, layers, explanations, SQL, the state of streams."""

import dataclasses
import time
from typing import Any

from starlette.responses import Response

from st_common.errors import ConfigError, QueryError
from st_common.server.asked import Asked, known_query, known_stream
from st_common.server.replies import plain_rows, rows_reply, value_reply

_MOST_ROWS = 10_000


def answer(asked: Asked) -> Response:
    """Who is in the answer of a query, now or at a time."""
    from st_common.serving.answers import answered

    query = known_query(asked)
    then = answered(asked.place.home, query, asked.params.get("at"))
    return rows_reply(then.rows, query=query, at=asked.params.get("at"))


def objects(asked: Asked) -> Response:
    """Where the objects of a stream are, or were."""
    from st_common import tables
    from st_common.regions.registry import Box
    from st_common.serving.history import NearestTo, objects_at

    given = asked.params
    stream = known_stream(asked, _needed(asked, "stream"))
    nearest = given.get("near")
    if not tables.exists(asked.place.home.table("positions", stream.name)):
        return value_reply({"stream": stream.name, "at": None, "rows": []})
    seen = objects_at(
        asked.place.home,
        stream,
        given.get("at"),
        inside=Box.of_corners(*given["bbox"]) if "bbox" in given else None,
        nearest=None
        if nearest is None
        else NearestTo(k=int(nearest[2]), x=nearest[0], y=nearest[1]),
    )
    return rows_reply(seen.rows, stream=stream.name, at=seen.at)


def layers(asked: Asked) -> Response:
    """All layers, in figures."""
    from st_common.layers.summary import summaries

    shown = [dataclasses.asdict(one) for one in summaries(asked.place.home)]
    return value_reply({"layers": shown})


def explain(asked: Asked) -> Response:
    """How a query is carried out, as lines of a tree; registered, or a SELECT that is sent."""
    from st_common.query.explain import explain as explained
    from st_common.query.explain import lines
    from st_common.serving.estimates import (
        caches_of,
        estimates_of,
        running_order,
    )

    name, plan = _plan(asked)
    home, stream = asked.place.home, known_stream(asked, plan.stream)
    tree = explained(
        plan,
        name,
        tick_s=stream.tick_s,
        estimates=estimates_of(home, stream, plan),
        running=running_order(home, stream, name, plan),
        caches=caches_of(home, stream, plan),
        stream=stream,
    )
    return value_reply({"query": name, "lines": list(lines(tree))})


def _plan(asked: Asked) -> tuple[str, Any]:
    """The plan that is to be explained, and the name of its query."""
    from st_common.query.area_store import HomeAreas
    from st_common.query.lookup import find
    from st_common.query.registry import fitted
    from st_common.query.text import parse

    if "query" in asked.path:
        row = find(asked.place.home, known_query(asked))
        if row.plan is None:
            raise QueryError(f"query {row.name!r} was dropped")
        return row.name, row.plan
    home, streams = asked.place.home, asked.place.streams()
    statements, _ = fitted(home, streams, parse(asked.text(), areas=HomeAreas(home)))
    if len(statements) != 1 or statements[0].plan is None:
        raise QueryError("one query is explained at a time")
    return statements[0].name, statements[0].plan


def why(asked: Asked) -> Response:
    """The newest change of an object in an answer, explained."""
    from st_common.query.lookup import find
    from st_common.serving.why import why as reason_of

    query, home = known_query(asked), asked.place.home
    reason = reason_of(
        home,
        query,
        _needed(asked, "object"),
        at=asked.params.get("at"),
        partner=asked.params.get("partner"),
        stream=asked.place.streams().get(find(home, query).stream),
    )
    return value_reply(reason.to_json())


def verify(asked: Asked) -> Response:
    """Answers of a query, or of all of a stream, checked by brute force over the archived positions."""
    from st_common.query.lookup import queries
    from st_common.serving.verify import verify as checked

    home = asked.place.home
    query = known_query(asked) if "query" in asked.path else None
    names = {row.stream for row in queries(home) if query in (None, row.name)}
    verdicts = [
        {**dataclasses.asdict(one), "holds": one.holds}
        for name in sorted(names)
        for one in checked(home, known_stream(asked, name), query)
    ]
    return value_reply(
        {"holds": all(one["holds"] for one in verdicts), "queries": verdicts}
    )


def sql(asked: Asked) -> Response:
    """The rows of one SELECT over the tables of the home; it reads, and nothing else."""
    from st_common.serving.sql import sql as result_of

    rows = result_of(asked.place.home, asked.text(), asked.place.streams)
    most = asked.params.get("limit", _MOST_ROWS)
    return rows_reply(rows.slice(0, most), more=len(rows) > most)


def backtest(asked: Asked) -> Response:
    """What registrations would have told on the closed days behind us."""
    from st_common.engine.batch.backtest import backtest as run
    from st_common.query.area_store import HomeAreas
    from st_common.query.registry import fitted
    from st_common.query.text import parse

    home, streams = asked.place.home, asked.place.streams()
    statements, _ = fitted(home, streams, parse(asked.text(), areas=HomeAreas(home)))
    plans = {one.name: one.plan for one in statements if one.plan is not None}
    of = {plan.stream for plan in plans.values()}
    if len(of) != 1:
        raise QueryError("registrations on one stream are tried at a time")
    stream = known_stream(asked, of.pop())
    done = run(home, stream, plans, days=asked.params.get("days", 30))
    return value_reply(
        {
            "fixes": done.fixes,
            "since": done.since,
            "until": done.until,
            "days": plain_rows(done.days),
            "totals": plain_rows(done.totals),
        }
    )


def status(asked: Asked) -> Response:
    """Each stream: its state, how far it is, what it counted, and its sources."""
    return value_reply(
        {"streams": [_stream_status(asked, name) for name in asked.place.streams()]}
    )


def _stream_status(asked: Asked, name: str) -> dict[str, Any]:
    from st_common.capture.log import Log
    from st_common.feeds.note import read_notes
    from st_common.ops.presence import presence
    from st_common.ops.status import read_status

    home, now_us = asked.place.home, time.time_ns() // 1000
    known, end = read_status(home.stream(name)), Log(home.log(name)).end()
    sources = []
    for note in read_notes(home, name):
        shown = dataclasses.asdict(note)
        del shown["owner"]
        sources.append(shown)
    told: dict[str, Any] = {"stream": name, "segments": end, "sources": sources}
    if known is None:
        return {**told, "state": "never run"}
    state = presence(home.stream(name), known, now_us=now_us).state
    counts = ("fixes", "rejects", "late", "double", "cut", "changes")
    return {
        **told,
        "state": state,
        "engine": known.engine,
        "position": known.position,
        "clock_us": known.now_ts,
        "beat_us": known.beat_ts,
        **{one: getattr(known, one) for one in counts},
    }


def _needed(asked: Asked, name: str) -> str:
    """A parameter that must be there."""
    if name not in asked.params:
        raise ConfigError(f"the parameter {name!r} is missing")
    return str(asked.params[name])
