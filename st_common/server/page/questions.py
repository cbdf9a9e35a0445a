"""Questions that are typed or drawn: what a SELECT would have told, whether it is right, what may be typed next."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import Response

from st_common import tables
from st_common.answers.completion import completions
from st_common.answers.names_known import Known
from st_common.batch.asking import ANSWER, known_until
from st_common.batch.asking import asked as asked_of_the_past
from st_common.batch.ordered import count_fixes, stored_span
from st_common.batch.searching import searched
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query.past import Past
from st_common.query.printed import select_text
from st_common.query.registry import fitted
from st_common.query.relations import source_of
from st_common.query.text import Statement, parse
from st_common.server.endpoint import LIMIT, STATEMENTS, Endpoint
from st_common.server.page.frame import frame_of
from st_common.server.page.known import kind_of
from st_common.server.parameters import Parameters
from st_common.server.replies import plain_rows, value_reply
from st_common.server.schemas import (
    NUMBER,
    ROWS,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    a_list,
    an_object,
    or_null,
)
from st_common.server.text_limits import areas_of

MOST_FIXES = 10_000_000
"""That a question may read: each reads its stream from the first fix on."""
_MOST_S = 30.0
_ROWS, _MOST_ROWS = 1000, 10_000


@Endpoint(
    "POST",
    "/page/ask",
    an_object(
        stream=TEXT,
        interval=TRUTH,
        more=TRUTH,
        fixes=WHOLE,
        first_fix_ts=or_null(TIME),
        last_fix_ts=or_null(TIME),
        rows=ROWS,
    ),
    params=(LIMIT,),
    takes=STATEMENTS,
    apart="ask",
    is_on_map=True,
)
def ask(asked: Parameters) -> Response:
    """What a SELECT that stands alone would have told, AS OF a time or BETWEEN two; of a layer what is in it now."""
    statement = _select(asked)
    plan, past = statement.plan, statement.past
    assert plan is not None  # noqa: S101 - a SELECT has one
    home, limit = asked.place.home, min(asked.params.get("limit", _ROWS), _MOST_ROWS)
    stream = source_of(home, asked.place.streams(), plan)
    if stream.layer is None:
        fixes = _few_fixes(home, stream, past)
        rows, more = _first(asked_of_the_past(home, stream, plan, past), limit)
        rows, span = _placed(home, stream, rows), stored_span(home, stream.name)
    else:
        features = searched(home, stream, plan, past).sort_by("object")
        rows = features.select([*ANSWER, "x", "y"]).slice(0, limit)
        fixes, more, span = len(features), len(features) > limit, None
    shown = plain_rows(rows)
    frame = frame_of(asked, stream)
    for row in shown:
        x, y = row.pop("x"), row.pop("y")
        row["lon"] = None if x is None else frame.lon(x)
        row["lat"] = None if y is None else frame.lat(y)
    is_interval = past is not None and past.since is not None
    beside = {"stream": stream.name, "interval": is_interval, "more": more}
    first, last = span or (None, None)
    beside |= {"fixes": fixes, "first_fix_ts": first, "last_fix_ts": last}
    return value_reply({**beside, "rows": shown})


def _few_fixes(home: Home, stream: StreamSettings, past: Past | None) -> int:
    """How many fixes the answer follows from: those of all days up to the last that is asked about."""
    until = known_until(home, stream.name) if past is None else past.until
    fixes = count_fixes(home, stream.name, None, until.astimezone(UTC).date())
    if fixes > MOST_FIXES:
        raise QueryError(
            f"the answer follows from {fixes:,} fixes, more than {MOST_FIXES:,}",
            hint="ask in a terminal, `fairway shell`, or register the query",
        )
    return fixes


def _first(told: Iterator[pa.Table], limit: int) -> tuple[pa.Table, bool]:
    """The first rows, and whether there are more; no further day is asked about when it has taken long."""
    until_s, parts, count = time.monotonic() + _MOST_S, [next(told)], 0
    count = len(parts[0])
    for part in told:
        parts.append(part)
        count += len(part)
        if count > limit or time.monotonic() > until_s:
            return pa.concat_tables(parts).slice(0, limit), True
    return pa.concat_tables(parts).slice(0, limit), count > limit


def _placed(home: Home, stream: StreamSettings, rows: pa.Table) -> pa.Table:
    """The rows with x and y: where each object was by its fix of the time when it came in; null where there is none."""
    when = "from_ts" if "from_ts" in rows.column_names else "since_ts"
    path = home.table("positions", stream.name)
    if not len(rows) or not tables.exists(path):
        nothing = pa.nulls(len(rows), pa.float64())
        return rows.append_column("x", nothing).append_column("y", nothing)
    fixes = tables.read(
        path,
        columns=["object", "event_ts", "x", "y"],
        filters=[
            ("event_ts", ">=", pc.min(rows[when]).as_py()),
            ("event_ts", "<=", pc.max(rows[when]).as_py()),
            ("object", "in", pc.unique(rows["object"]).to_pylist()),
        ],
    )
    first = fixes.group_by(["object", "event_ts"]).aggregate(
        [("x", "min"), ("y", "min")]
    )
    first = first.rename_columns(["object", when, "x", "y"])
    return _joined(rows, first, when)


def _joined(rows: pa.Table, places: pa.Table, when: str) -> pa.Table:
    """The rows in their order, each with its place."""
    numbered = rows.append_column("number", pa.array(range(len(rows))))
    keys = numbered.select(["number", "object", when])
    both = keys.join(places, ["object", when]).sort_by("number")
    return rows.append_column("x", both["x"]).append_column("y", both["y"])


@Endpoint(
    "POST",
    "/page/check",
    an_object(
        ok=TRUTH,
        stream=TEXT,
        kind=TEXT,
        dwell_s=or_null(NUMBER),
        text=TEXT,
    ),
    takes=STATEMENTS,
    lane="page",
    apart_if_long="ask",
)
def check(asked: Parameters) -> Response:
    """Whether a SELECT is right, and what it is.

    Raises:
        LongError: in a thread, of a text that takes long.
    """
    statement = _select(asked)
    plan = statement.plan
    assert plan is not None  # noqa: S101 - a SELECT has one
    dwell_s = None if plan.fence is None else plan.fence.dwell_s
    told = {"ok": True, "stream": plan.stream, "kind": kind_of(plan)}
    return value_reply({**told, "dwell_s": dwell_s, "text": select_text(plan)})


def _select(asked: Parameters) -> Statement:
    """The SELECT that was sent, with the names as they are declared.

    Raises:
        TextError: what is wrong with it, with line and column.
    """
    home, streams = asked.place.home, asked.place.streams()
    areas = areas_of(asked, asked.body)
    statements = parse(asked.text(), areas=areas)
    if len(statements) != 1 or statements[0].op != "ask":
        raise QueryError(
            "expected one SELECT that stands alone",
            hint="SELECT * FROM stream INSIDE .. AS OF '2024-05-01T12:00:00Z'",
        )
    (fitting,), _ = fitted(home, streams, statements)
    return fitting


@Endpoint(
    "POST",
    "/page/complete",
    an_object(**{"from": WHOLE}, options=a_list(an_object(text=TEXT, about=TEXT))),
    takes=("application/json",),
    lane="page",
    apart_if_long="ask",
)
def complete(asked: Parameters) -> Response:
    """What may be typed next in a statement.

    Raises:
        LongError: in a thread, of a text that takes long.
    """
    areas_of(asked, asked.body)
    body = asked.json()
    text, place = body.get("text"), body.get("cursor")
    if not isinstance(text, str) or not isinstance(place, int):
        raise QueryError("expected a text and a cursor", hint='{"text": "SEL", "cursor": 3}')  # fmt: skip
    place = min(max(place, 0), len(text))
    start, options = completions(Known(asked.place.home, asked.place.streams()), text, place)  # fmt: skip
    shown = [{"text": one.text, "about": one.about} for one in options]
    return value_reply({"from": start, "options": shown})


def answers_until(home: Home, stream: str) -> datetime | None:
    """The last time that `ask` can be asked about; None before something is known."""
    try:
        return known_until(home, stream)
    except QueryError:
        return None
