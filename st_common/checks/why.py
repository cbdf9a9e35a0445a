"""Why a change happened: fix, query, layer, tick and batch behind one row of `changes` (SPEC X5)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.batch import Batch, batch_of
from st_common.answers.changes import stream_changes
from st_common.answers.lateness import lateness_of, words_of
from st_common.checks.archived import archived_history, controls_of
from st_common.checks.history import NEVER
from st_common.checks.sentences import Fix, Others, sentence, why_filtered
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.stream_values import FILTER_COLUMNS, LATE_COLUMNS
from st_common.contracts import load_contract
from st_common.errors import QueryError
from st_common.history.snapshots import newest_snapshot
from st_common.history.stored import FILTERED
from st_common.layers.table import AT_HOME, newest_version, read_rows
from st_common.log.log import Log
from st_common.position import row_of, segment_of
from st_common.query.control import QueryRow
from st_common.query.lookup import find, history
from st_common.query.neighbours import GroupNearest, Nearest
from st_common.query.plan import Plan
from st_common.query.problem import did_you_mean
from st_common.tables.pruning import Filters

_EPOCH, _US = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_AT_ONCE = (
    "registered",
    "backfilled",
    "dropped",
    "replaced",
    "layer",
    "area",
    "failed",
)  # judged at a control row, not at a tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The feature of a layer that a change is about.

    Attributes:
        layer: the layer's name.
        version: the version that was judged; None where the change names none.
        fid: the feature's id.
        kind: its kind; None where that version is not kept any more.
        tags: its tags; empty likewise.
    """

    layer: str
    version: int | None
    fid: str | None
    kind: str | None
    tags: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Fixes that a position filter took out (SPEC X11).

    Attributes:
        count: how many.
        fix: the newest of them.
        reason: why that one was filtered.
        value: what was too much or too little in it: metres, or metres per second.
    """

    count: int
    fix: Fix
    reason: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One change and everything behind it.

    Attributes:
        stream: the stream of the query.
        change: the row of `changes`, with `segment` and `row` of its position.
        batch: the commit that brought it.
        registered: the control row of the version that was judged; None when no log has it.
        newest: the number of the query's newest version.
        fix: the one that the object was judged by; None for a group of an aggregate, and while it is not archived.
        joined: the feature it is about; None without a layer.
        tick: the event time at which the query was judged; None for a query that is judged fix by fix.
        focals: the objects that the query goes with, each with its fix at that tick; None: none was known.
        newcomers: of an object that left the nearest ones, those that came in at the same moment, likewise.
        sentence: all this in one sentence.
        filtered: fixes of the object since then that a position filter took out.
    """

    stream: str
    change: dict[str, Any]
    batch: Batch
    registered: QueryRow | None
    newest: int
    fix: Fix | None
    joined: Joined | None
    tick: datetime | None
    focals: dict[str, Fix | None]
    newcomers: dict[str, Fix | None]
    sentence: str
    filtered: Filtered | None = None

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON values: times in ISO 8601 with Z, numbers that JSON does not have as null."""
        row = self.registered
        value = {name: _json(getattr(self, name)) for name in self.__slots__}
        value["registered"] = row and {
            "op": row.op,
            "version": row.version,
            "text": row.text,
            "owner": row.owner,
            "position": row.position,
            "plan": row.plan and row.plan.to_json(),
        }
        return value


def _json(value: Any) -> Any:
    if isinstance(value, Fix | Filtered | Joined | Batch):
        value = asdict(value)
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def why(
    home: Home,
    query: str,
    name: str,
    *,
    at: datetime | None = None,
    partner: str | None = None,
    stream: StreamSettings | None = None,
) -> Why:
    """The newest change of an object in the answer of a query, up to the time `at`, with everything behind it.

    Args:
        home: where the tables lie.
        query: the query's name; it may be dropped since.
        name: the object's id, or the group of an aggregate (`*` without groups).
        at: the change is the newest with an event time up to then; needs a time zone.
        partner: of a join, only changes with this feature or object.
        stream: the settings of the query's stream; lateness and silence decide which fixes count.

    Raises:
        QueryError: there is no such query, or it has no such change; the hint names the nearest that there is.
    """
    query = find(home, query).name  # as it is registered, whatever the case
    rows = history(home, query)
    streams = sorted({row.stream for row in rows})
    of, change = _change(home, streams, query, name, at, partner, stream=stream)
    registered = _judged(rows, of, change)
    plan = registered.plan if registered else None
    if plan is not None and plan.outer is not None:
        raise QueryError(
            f"query {query!r} is about the rows of a query, which are not kept",
            hint="register what stands in its parentheses as a query, and ask why of that",
        )
    fix = None
    if plan is not None and plan.aggregate is None and change["fix_ts"] is not None:
        fix = fix_of(home, of, change["object"], change["fix_ts"])
    tick = _tick(plan, change)
    newcomers = _newcomers(home, of, plan, change)
    names = [*(plan.focals if plan else ()), *newcomers]
    fixes = fixes_at(home, stream, names, change["position"], tick)
    others = Others(
        focals={name: fixes[name] for name in (plan.focals if plan else ())},
        newcomers={name: fixes[name] for name in newcomers},
    )
    return Why(
        stream=of,
        change=change,
        batch=batch_of(home, of, change["position"], change["seq"]),
        registered=registered,
        newest=max(row.version for row in rows),
        fix=fix,
        joined=_joined(home, plan, change),
        tick=tick,
        focals=dict(others.focals),
        newcomers=dict(others.newcomers),
        sentence=sentence(change, plan, fix, others, stream),
        filtered=filtered_since(home, of, name, after=change["event_ts"], at=at),
    )


def _tick(plan: Plan | None, change: Mapping[str, Any]) -> datetime | None:
    """The tick at which a change was judged; None for one that was judged at once."""
    at_tick = plan is not None and plan.by_ticks and change["cause"] not in _AT_ONCE
    return change["event_ts"] if at_tick else None


def _judged(
    rows: Sequence[QueryRow], stream: str, change: dict[str, Any]
) -> QueryRow | None:
    """The registration by which a change was judged: of its version the last one before it; None: no log has it."""
    version = stream, change["query_version"]
    made = [
        row
        for row in rows
        if row.plan is not None and (row.stream, row.version) == version
    ]
    # A `follow` row gives the same version another plan, so of several rows the last one before the change counts.
    before = [row for row in made if row.position <= change["position"]]
    return next(reversed(before), None)


def _newcomers(
    home: Home, stream: str, plan: Plan | None, change: dict[str, Any]
) -> list[str]:
    """Who came among the nearest when this object left them, in the order of the log."""
    if (
        plan is None
        or plan.aggregate is not None
        or plan.frame is not None
        or change["cause"] != "leave"
    ):
        return []
    if not isinstance(plan.neighbours, Nearest | GroupNearest):
        return []
    here = stream_changes(
        home,
        stream,
        change["query"],
        since=change["position"] - 1,
        until=change["event_ts"],
    )
    same = pc.and_(
        pc.equal(here["position"], change["position"]),
        pc.equal(here["event_ts"], change["event_ts"]),
    )
    names: list[str] = here.filter(pc.and_(same, pc.equal(here["sign"], 1)))[
        "object"
    ].to_pylist()
    return names


def _change(
    home: Home,
    streams: list[str],
    query: str,
    name: str,
    at: datetime | None,
    partner: str | None,
    *,
    stream: StreamSettings | None,
) -> tuple[str, dict[str, Any]]:
    """The newest change, and the stream that it is of: of several streams the one with the latest event time."""
    newest_of_streams: list[tuple[str, pa.Table]] = [
        (each, stream_changes(home, each, query, until=at)) for each in streams
    ]
    newest: list[tuple[str, dict[str, Any]]] = []
    for each, rows in newest_of_streams:
        own = rows.filter(pc.equal(rows["object"], name))
        own = own if partner is None else own.filter(pc.equal(own["partner"], partner))
        if len(own):
            newest.append((each, _as_dict(own.slice(len(own) - 1))))
    if newest:
        return max(newest, key=lambda pair: pair[1]["event_ts"])
    told = pa.concat_tables([rows for _, rows in newest_of_streams])
    error = _unknown(told, query, name, at, partner)
    for each in streams:
        out = filtered_since(home, each, name, after=None, at=at)
        if out is not None:
            why_not = why_filtered(out.reason, out.value)
            hint = f"{out.count} of its fixes are filtered, the last: {why_not}"
            raise QueryError(error.message, hint=hint)
    raise QueryError(error.message, hint=_late(home, stream, name) or error.hint)


def _late(home: Home, stream: StreamSettings | None, name: str) -> str | None:
    """That fixes of an object came too late, in words; None where none did, or nobody knows the settings."""
    late = () if stream is None else lateness_of(home, stream).objects
    return next((words_of(one) for one in late if one.name == name), None)


def _as_dict(row: pa.Table) -> dict[str, Any]:
    change: dict[str, Any] = row.to_pylist()[0]
    return change | {
        "segment": segment_of(change["position"]),
        "row": row_of(change["position"]),
    }


def _unknown(
    rows: pa.Table, query: str, name: str, at: datetime | None, partner: str | None
) -> QueryError:
    until = "" if at is None else f" up to {at.isoformat()}"
    objects = set(rows["object"].to_pylist())
    if partner is not None and name in objects:
        partners = set(
            rows.filter(pc.equal(rows["object"], name))["partner"]
            .drop_null()
            .to_pylist()
        )
        hint = did_you_mean(partner, partners) or (
            f"partners: {_few(partners)}" if partners else "it joins nothing"
        )
        return QueryError(
            f"{name!r} was never in the answer of {query!r} with {partner!r}{until}",
            hint=hint,
        )
    hint = did_you_mean(name, objects) or (
        f"objects: {_few(objects)}" if objects else "nothing was in it so far"
    )
    return QueryError(
        f"{name!r} was never in the answer of {query!r}{until}", hint=hint
    )


def _few(names: set[str]) -> str:
    first = sorted(names)[:3]
    return ", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _joined(home: Home, plan: Plan | None, change: dict[str, Any]) -> Joined | None:
    if plan is None or plan.join is None or plan.join.chooses:
        return None
    layer, version, fid = plan.join.layer, change["layer_version"], change["partner"]
    kind, tags = None, {}
    if fid is not None and version is not None and newest_version(home, layer):
        filters = [("fid", "=", fid), *AT_HOME]
        features = read_rows(
            home, layer, version, columns=["kind", "tags"], filters=filters
        ).to_pylist()
        kind, tags = (
            (features[0]["kind"], dict(features[0]["tags"] or []))
            if features
            else (None, {})
        )
    return Joined(layer=layer, version=version, fid=fid, kind=kind, tags=tags)


# -- the fixes behind a change, in the table of positions --------------------------------------------------------------


def fix_of(home: Home, stream: str, name: str, event_ts: datetime) -> Fix | None:
    """The fix of an object at an event time, among those that were not filtered.

    Args:
        home: where the tables lie.
        stream: the stream.
        name: the object's id.
        event_ts: its exact time.

    Returns:
        The first in the log when there are several; None when none is archived (yet).
    """
    fixes = _rows(home, stream, [("event_ts", "=", event_ts), ("object", "=", name)])
    return min(fixes, key=lambda fix: fix.position, default=None)


def fixes_at(
    home: Home,
    stream: StreamSettings | None,
    names: Sequence[str],
    position: int,
    tick: datetime | None,
) -> dict[str, Fix | None]:
    """The last fix of each of some objects, of those that counted when a query was judged at a row of the log.

    Which count the history says, as for `verify`. What is older than the newest snapshot is not read, unless one of
    the objects said nothing since.

    Args:
        home: where the tables lie.
        stream: its settings; None: nobody knows which fixes counted.
        names: the objects' ids.
        position: of the row.
        tick: at which tick it was judged; None: at once, by what stands before the row.

    Returns:
        By id; None where there was none, or none is archived (yet).
    """
    found: dict[str, Fix | None] = dict.fromkeys(names)
    if stream is None or not names:
        return found
    if not tables.exists(home.table("positions", stream.name)):
        return found
    controls = controls_of(Log(home.log(stream.name)), position + 1)
    snapshot = newest_snapshot(home, stream.name, tick)
    for since in [snapshot.from_ts, None] if snapshot else [None]:
        past, _ = archived_history(
            home, stream, controls, position + 1, objects=names, since=since
        )
        if tick is None:
            rows = past.before(position, NEVER).seen
        else:
            rows = past.at_tick(position, (tick - _EPOCH) // _US).judged
        for row in past.events.last(rows).tolist():
            name, at = past.fixes.ids[row], _EPOCH + int(past.events.ts[row]) * _US
            found[name] = fix_of(home, stream.name, name, at)
        if None not in found.values():
            break
    return found


def filtered_since(
    home: Home, stream: str, name: str, *, after: datetime | None, at: datetime | None
) -> Filtered | None:
    """What a position filter took out of an object's fixes; None when nothing was.

    Args:
        home: where the tables lie.
        stream: the stream.
        name: the object's id.
        after: only fixes behind this event time; None: from the beginning.
        at: only fixes up to this event time; None: to the end.
    """
    bounds: Filters = [("object", "=", name)]
    bounds += [("event_ts", ">", after)] if after is not None else []
    bounds += [("event_ts", "<=", at)] if at is not None else []
    filtered = [one for one in _records(home, stream, bounds) if one.get(FILTERED)]
    if not filtered:
        return None
    newest = max(
        filtered, key=lambda one: (one["event_ts"], -one["segment"], -one["row"])
    )
    return Filtered(
        count=len(filtered),
        fix=_as_fix(newest),
        reason=newest[FILTERED],
        value=newest["filtered_value"],
    )


def _rows(home: Home, stream: str, filters: Filters) -> list[Fix]:
    """The fixes that were not filtered."""
    records = _records(home, stream, filters)
    return [_as_fix(record) for record in records if record.get(FILTERED) is None]


def _records(home: Home, stream: str, filters: Filters) -> list[dict[str, Any]]:
    path = home.table("positions", stream)
    if not tables.exists(path):
        return []
    records: list[dict[str, Any]] = tables.read(path, filters=filters).to_pylist()
    return records


def _as_fix(record: dict[str, Any]) -> Fix:
    own = {
        *load_contract("positions").arrow_schema().names,
        *LATE_COLUMNS,
        *FILTER_COLUMNS,
    }
    known = ("object", "segment", "row", "event_ts", "x", "y", "gone")
    return Fix(
        **{key: record[key] for key in known},
        attributes={key: value for key, value in record.items() if key not in own},
    )
