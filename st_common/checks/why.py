"""Why a change happened: fix, query, layer, tick and batch behind one row of `changes` (SPEC X5)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.batch import Batch, batch_of
from st_common.answers.changes import stream_changes
from st_common.answers.lateness import lateness_of, words_of
from st_common.checks.evidence import Filtered, Fix, filtered_since, fix_at, fix_of
from st_common.checks.sentences import Others, sentence, why_filtered
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.position import row_of, segment_of
from st_common.query.control import QueryRow
from st_common.query.lookup import find, history
from st_common.query.neighbours import GroupNearest, Nearest
from st_common.query.plan import Plan
from st_common.query.problem import did_you_mean

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
        row, value = (
            self.registered,
            {
                name: getattr(self, name)
                for name in self.__slots__
                if name != "registered"
            },
        )
        value |= {"batch": asdict(self.batch), "fix": self.fix and asdict(self.fix)}
        value |= {"filtered": self.filtered and asdict(self.filtered)}
        value |= {"joined": self.joined and asdict(self.joined)}
        for part in ("focals", "newcomers"):
            value[part] = {
                name: fix and asdict(fix) for name, fix in getattr(self, part).items()
            }
        value["registered"] = row and {
            "op": row.op,
            "version": row.version,
            "text": row.text,
            "owner": row.owner,
            "position": row.position,
            "plan": row.plan and row.plan.to_json(),
        }
        plain: dict[str, Any] = _plain(value)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_about_fixes(plan: Plan | None, query: str) -> None:
    """Raises where a query is about the rows of another one: what these were is not kept."""
    if plan is not None and plan.outer is not None:
        raise QueryError(
            f"query {query!r} is about the rows of a query, which are not kept",
            hint="register what stands in its parentheses as a query, and ask why of that",
        )


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
    of, change = _change(
        home,
        sorted({row.stream for row in rows}),
        query,
        name,
        at,
        partner,
        stream=stream,
    )
    registered = _judged(rows, of, change)
    plan = registered.plan if registered else None
    _check_about_fixes(plan, query)
    fix = None if plan is None or plan.aggregate is not None else _fix(home, of, change)
    fixes_then = partial(_fixes_then, home, of, change, _late_us(stream))
    focals = fixes_then(plan.focals if plan else ())
    newcomers = fixes_then(_newcomers(home, of, plan, change))
    others = Others(focals=focals, newcomers=newcomers)
    return Why(
        stream=of,
        change=change,
        batch=batch_of(home, of, change["position"], change["seq"]),
        registered=registered,
        newest=max(row.version for row in rows),
        fix=fix,
        joined=_joined(home, plan, change),
        tick=_tick(plan, change),
        focals=focals,
        newcomers=newcomers,
        sentence=sentence(change, plan, fix, others, stream),
        filtered=filtered_since(home, of, name, after=change["event_ts"], at=at),
    )


def _fixes_then(
    home: Home,
    stream: str,
    change: Mapping[str, Any],
    late_us: int | None,
    names: Iterable[str],
) -> dict[str, Fix | None]:
    """The last fixes of objects as they counted at a change, by their ids."""
    at, before = change["event_ts"], change["position"]
    return {
        name: fix_at(home, stream, name, at, before, late_us=late_us) for name in names
    }


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


def _late_us(stream: StreamSettings | None) -> int | None:
    """By how much newer another fix must be for one that comes after it to be late; None: only its own object's are."""
    if stream is None or not (stream.lateness_s or stream.silence_s):
        return None
    return round((stream.lateness_s or stream.silence_s or 0.0) * 1e6)


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


def _fix(home: Home, stream: str, change: dict[str, Any]) -> Fix | None:
    return (
        None
        if change["fix_ts"] is None
        else fix_of(home, stream, change["object"], change["fix_ts"])
    )


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
    path = home.table("layers", layer)
    if fid is not None and version is not None and tables.exists(path):
        filters = [("fid", "=", fid), ("home", "=", True)]
        features = tables.read(
            path, version=version, columns=["kind", "tags"], filters=filters
        ).to_pylist()
        kind, tags = (
            (features[0]["kind"], dict(features[0]["tags"] or []))
            if features
            else (None, {})
        )
    return Joined(layer=layer, version=version, fid=fid, kind=kind, tags=tags)
