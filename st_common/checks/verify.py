"""Does the answer hold? Brute force over the table `positions` against the folded changes (SPEC X1).

It shares nothing with the engines: which fixes count follows from running maxima over the whole history (`history`),
and answers come from plain columns, shapely and DuckDB. Queries at ticks are judged at the last one that was due. Each
change is also held against the fixes for the place that it names (ADR 92).
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from st_common import tables
from st_common.capture.log import Log
from st_common.checks.answers import (
    Answer,
    answer_before,
    expected_answer,
    judged_events,
    members_now,
    rows_in_windows,
    tick_at,
    value_text,
    wrongly_told,
)
from st_common.checks.archived import (
    History,
    Kept,
    history_of,
    in_words,
    kept_of,
    untold,
)
from st_common.checks.history import FIX, Registered, alive, controls_of, registered_by
from st_common.checks.notebook import Notebook, Verified
from st_common.checks.visits import (
    Lived,
    lived,
    lived_at_ticks,
    lived_incidents,
    rounded,
    told_incidents,
)
from st_common.checks.windows import speeds_in_doubt
from st_common.engine.archiver import EVERY_S
from st_common.errors import QueryError, StorageError, TransientError
from st_common.home import Home
from st_common.ops.launcher import find
from st_common.position import position_of
from st_common.query.fence import Fence
from st_common.query.incident import Incident
from st_common.query.plan import Aggregate, Plan
from st_common.reference.metric import SCALED
from st_common.serving.changes import stream_changes
from st_common.serving.lateness import lateness_of
from st_common.settings import StreamSettings


def verify(
    home: Home, stream: StreamSettings, query: str | None = None
) -> list[Verified]:
    """The answer of one query, or of all that are registered, checked up to where both tables reach.

    Raises:
        QueryError: there is no such query at that position, or nothing was archived and nothing runs.
        TransientError: nothing is archived yet, and the engine will.
    """
    return list(verified(home, stream, None if query is None else [query]))


def verified(
    home: Home,
    stream: StreamSettings,
    names: Sequence[str] | None = None,
    *,
    since: int = 0,
    notebook: Notebook | None = None,
) -> Iterator[Verified]:
    """As `verify`, one query after the other as soon as it is checked.

    A query that cannot be evaluated is one of them, and says why; the others go on.

    Args:
        home: the home folder; nothing in it is changed.
        stream: the settings of the stream.
        names: the queries; None: all that are registered.
        since: of what was told before this position neither places nor events of fences and incidents are checked;
            answers are as ever.
        notebook: has what was verified before, and is told what is; see `verify_notes`.

    Raises:
        QueryError: a query is not registered at that position, or nothing was archived and nothing runs.
        TransientError: nothing is archived yet, and the engine will.
    """
    end = _reached(home, stream)
    if notebook is not None:
        end = notebook.end(end)
    controls = controls_of(Log(home.log(stream.name)), end)
    registered = registered_by(controls, stream.unit_m)
    wanted = _wanted(registered, stream, names)
    if tables.has_deletions(home.table("positions", stream.name)):
        why = "days of the fixes that it follows from were deleted"
        yield from (_not_verified(query, end, why) for query in wanted)
        return
    if not wanted:
        return
    history = history_of(home, stream, controls, end)
    changes = stream_changes(home, stream.name).to_pandas()
    changes = changes[changes["position"] < end]
    seen = lateness_of(home, stream)
    told = _Told(changes, kept_of(home, stream.name, changes), end, since)
    if notebook is not None:
        notebook.open(end, since, history, changes, registered)
        done = notebook.done
        yield from [done[one.name] for one in wanted if one.name in done]
        wanted = [one for one in wanted if one.name not in done]
    for one in _each(wanted, history, told):
        found = one
        if one.members is not None:
            found = replace(one, fixes=seen.fixes, late=seen.late)
        if notebook is not None:
            notebook.note(found)
        yield found


def _wanted(
    registered: Mapping[str, Registered],
    stream: StreamSettings,
    names: Sequence[str] | None,
) -> list[Registered]:
    """The registered queries of some names, or all, as they were registered."""
    for name in names or ():
        if name not in registered:
            raise QueryError(
                f"stream {stream.name!r} has no query {name!r}",
                hint="`fairway query list` names them",
            )
    asked = set(registered if names is None else names)
    return [one for name, one in registered.items() if name in asked]


@dataclass(frozen=True, slots=True)
class _Told:
    """What was told before the position `end`, as far as it is kept; and from where on events are looked at."""

    changes: pd.DataFrame
    kept: Kept | None
    end: int
    since: int


def _each(
    wanted: Sequence[Registered], history: History, told: _Told
) -> Iterator[Verified]:
    """What is found of each query. Places of all changes are looked at together, for that asks all fixes."""
    changes = told.changes[told.changes["query"].isin([one.name for one in wanted])]
    lately = changes[changes["position"] >= told.since]
    wrong = misplaced(lately, history.events)
    own = dict(iter(changes.groupby("query", sort=False)))
    for query in wanted:
        if query.is_seeded:
            yield _not_verified(query, told.end, _SEEDED)
            continue
        mine = own.get(query.name, changes[:0])
        one = _guarded(query, history, mine, told.end, told.kept, told.since)
        yield replace(one, misplaced=int(wrong.get(query.name, 0)))


def _guarded(
    query: Registered,
    history: History,
    mine: pd.DataFrame,
    end: int,
    kept: Kept | None,
    since: int,
) -> Verified:
    """As `_verified`; what a query raises is said of this query, as engines say it."""
    try:
        return _verified(query, history, mine, end, kept, since)
    except (MemoryError, TransientError, StorageError):
        raise  # no fault of the query
    except Exception as error:  # noqa: BLE001 - what is evaluated are the words of users
        said = (str(error) or type(error).__name__).splitlines()[0]
        why = f"it cannot be evaluated: {said}"
        return replace(_not_verified(query, end, why), failed=True)


def _not_verified(query: Registered, end: int, why: str) -> Verified:
    return Verified(
        query=query.name,
        position=end,
        members=None,
        missing=0,
        extra=0,
        checked=False,
        unchecked=why,
    )


def _reached(home: Home, stream: StreamSettings) -> int:
    """The place after the last row that both `changes` and `positions` have."""
    engine = tables.committed(home.table("changes", stream.name), "engine")
    archive = tables.committed(
        home.table("positions", stream.name), f"archive-{stream.name}"
    )
    if (engine is None or archive is None) and _is_run(home, stream):
        raise TransientError(
            f"stream {stream.name!r} is not archived yet",
            hint=f"try again in {EVERY_S:g} s",
        )
    if engine is None or archive is None:
        raise QueryError(
            f"stream {stream.name!r} has nothing to verify yet",
            hint=f"`fairway run {stream.name}` first",
        )
    return min(engine + 1, position_of(archive + 1, 0))


def _is_run(home: Home, stream: StreamSettings) -> bool:
    """Whether an engine lives, which will archive what it has read."""
    folder = home.stream(stream.name)
    return find(folder, now_us=time.time_ns() // 1000) is not None


_SEEDED = "it began with what came before it (REGISTER .. FROM), which brute force does not know"
_IN_DOUBT = "its values depend on how exactly metres are measured"


def _verified(
    query: Registered,
    history: History,
    changes: pd.DataFrame,
    end: int,
    kept: Kept | None,
    since: int,
) -> Verified:
    mine = changes.sort_values(["position", "seq"])
    plan = query.plan
    if plan.fence is not None:
        return _verified_fence(query, plan.fence, history, mine, end, kept, since)
    if plan.incident is not None:
        return _verified_incidents(
            query, plan.incident, history, mine, end, kept, since
        )
    last = _told_last(mine)
    held = last[last["sign"] > 0]
    frame, aggregate = query.plan.frame, _told_by_value(query.plan)
    if (
        query.plan.outer is None
        and frame is not None
        and aggregate is not None
        and aggregate.function == "avgspd"
        and not history.of.space.is_flat
    ):
        speeds = speeds_in_doubt(frame, rows_in_windows(query, frame, history))
        return _verified_speeds(query, speeds, last, end, kept)
    folded = _members(held, aggregate)
    what = "member" if aggregate is None else "group"
    return _verified_members(query, history, mine, last, folded, end, kept, what=what)


def _verified_members(  # noqa: PLR0917 - what is told, what should be, and how far it is known
    query: Registered,
    history: History,
    mine: pd.DataFrame,
    last: pd.DataFrame,
    folded: Answer,
    end: int,
    kept: Kept | None,
    *,
    what: str,
) -> Verified:
    """The answer that changes fold to beside the one that brute force finds; `what` it has: members or groups."""
    sure, maybe = expected_answer(query, history)
    extra = 0 if maybe is None else len(folded - maybe)
    other = _other_times(query, history, mine) if query.plan.valid_until else 0
    gone = _untold(query, history, sure - folded, last, kept)
    return Verified(
        query=query.name,
        position=end,
        members=len(folded if maybe is None else maybe),
        missing=len(sure - folded) - gone + other,
        extra=extra + other,
        checked=maybe is not None,
        unchecked=in_words(gone, what) if maybe is not None else _IN_DOUBT,
    )


def _told_last(changes: pd.DataFrame) -> pd.DataFrame:
    """The last change of each member, in their order."""
    return (
        changes[changes["sign"] != 0]
        .assign(partner=changes["partner"].fillna(""))
        .groupby(["object", "partner"])
        .tail(1)
    )


def _members(held: pd.DataFrame, aggregate: Aggregate | None) -> Answer:
    """Members and partners, or groups and values as texts."""
    if aggregate is None:
        return set(zip(held["object"], held["partner"], strict=True))
    values = held["value"].map(value_text)
    if aggregate.function == "several":
        values = held["fields"].map(json.loads).map(value_text)
    return set(zip(held["object"], values, strict=True))


def _told_by_value(plan: Plan) -> Aggregate | None:
    """The aggregate whose values are told of a query; None where it tells of members, or of rows of them."""
    if plan.outer is not None and plan.outer.aggregate is not None:
        return plan.outer.aggregate
    return plan.aggregate


def _untold(
    query: Registered,
    history: History,
    absent: Answer,
    last: pd.DataFrame,
    kept: Kept | None,
) -> int:
    """How many of those that are absent from a fold may have come in days of which the changes were deleted."""
    if kept is None or not absent:
        return 0
    before = answer_before(query, history, kept.position, kept.day_us)
    return untold(
        absent, before, last, by=2 if _told_by_value(query.plan) is None else 1
    )


def _other_times(query: Registered, history: History, mine: pd.DataFrame) -> int:
    """How many members were told last that they stay until another time than they do."""
    told = mine[mine["sign"] >= 0].assign(partner=mine["partner"].fillna(""))
    told_us = told["event_ts"].dt.as_unit("us").astype(np.int64)
    told = told.assign(told_us=told_us).groupby(["object", "partner"]).tail(1)
    told = told[["object", "partner", "value", "told_us"]]
    now, here = members_now(query, history), alive(judged_events(query, history))
    return wrongly_told(
        query.plan,
        now,
        told,
        here,
        history.of.metric,
        since=query.position,
        first_tick=tick_at(query, history),
    )


def _verified_fence(  # noqa: PLR0917 - as `_verified`
    query: Registered,
    fence: Fence,
    history: History,
    mine: pd.DataFrame,
    end: int,
    kept: Kept | None,
    since: int,
) -> Verified:
    """All events of a fence, each at its row of the log, and so its answer, but for visits that are in doubt."""
    live = lived_at_ticks if query.plan.by_ticks else lived
    life = live(query, fence, history)
    start = max(since, max(query.kept, default=query.position))
    own = mine[(mine["query_version"] == query.version) & (mine["position"] >= start)]
    columns = (own[name].tolist() for name in _TOLD)
    event_us = own["event_ts"].dt.as_unit("us").astype(np.int64).tolist()
    events_told = Counter(
        (*row[:5], at_us, rounded(row[5]))
        for row, at_us in zip(zip(*columns, strict=True), event_us, strict=True)
    )
    told = [row for row in life.told if row[0] >= start]
    there = [row for row in told if kept is None or kept.has(row[0], row[5])]
    expected = Counter(there)
    missing, extra = (
        sum(count for row, count in rows.items() if not life.is_doubtful(row))
        for rows in (expected - events_told, events_told - expected)
    )
    gone = in_words(len(told) - len(there), "event")
    unchecked = (_visits_in_doubt(life), gone)
    return Verified(
        query=query.name,
        position=end,
        members=len(life.inside) if fence.has_answer else 0,
        missing=missing,
        extra=extra,
        unchecked="; ".join(filter(None, unchecked)),
    )


def _verified_incidents(  # noqa: PLR0917 - as `_verified`
    query: Registered,
    incident: Incident,
    history: History,
    mine: pd.DataFrame,
    end: int,
    kept: Kept | None,
    since: int,
) -> Verified:
    """All that was told of incidents, each at its row of the log, and so the open ones, but for what is in doubt."""
    life = lived_incidents(query, incident, history)
    own = mine[(mine["query_version"] == query.version) & (mine["position"] >= since)]
    told = told_incidents(own, incident)
    should = [row for row in life.told if row[0] >= since]
    there = [row for row in should if kept is None or kept.has(row[0], row[5])]
    expected = Counter(there)
    missing, extra = (
        sum(count for row, count in rows.items() if not life.is_doubtful(row))
        for rows in (expected - told, told - expected)
    )
    gone = in_words(len(should) - len(there), "event")
    unchecked = (_visits_in_doubt(life), gone)
    return Verified(
        query=query.name,
        position=end,
        members=len(life.inside),
        missing=missing,
        extra=extra,
        unchecked="; ".join(filter(None, unchecked)),
    )


def _visits_in_doubt(life: Lived) -> str:
    """In words; nothing of none."""
    count = sum(len(spans) for spans in life.doubtful.values())
    what = (
        f"{count} visit{'s' * (count > 1)}, for a fix is too near to a border to tell"
    )
    return what if count else ""


_TOLD = ("position", "object", "partner", "sign", "cause", "value")


def _verified_speeds(
    query: Registered,
    expected: pd.DataFrame,
    last: pd.DataFrame,
    end: int,
    kept: Kept | None,
) -> Verified:
    """Average speeds on degrees: equal up to how exactly metres are measured, where no fix is in doubt."""
    held = last[last["sign"] > 0]
    count = len(expected)
    if kept is not None:
        expected = expected[expected.index.isin(last["object"])]
    told = held.set_index("object")["value"].reindex(expected.index)
    same = np.isclose(
        told, expected["speed"], rtol=2 * SCALED, atol=1e-9, equal_nan=True
    )
    present = expected.index.isin(held["object"])
    wrong = expected["sure"] & ~(same & present)
    strangers = int((~held["object"].isin(expected.index)).sum())
    return Verified(
        query=query.name,
        position=end,
        members=len(held),
        missing=int(wrong.sum()),
        extra=strangers + int((wrong & present).sum()),
        unchecked=in_words(count - len(expected), "speed"),
    )


_PLACE = ["x", "y"]


def misplaced(changes: pd.DataFrame, events: pd.DataFrame) -> dict[str, int]:
    """How many changes of each query name another place than the object's last fix that counted, up to `fix_ts`.

        fixes of a (time: x)   10: 1   20: 5   30: 9
        a change of fix_ts 20 says 5   ->   right;   one of fix_ts 25 says 9   ->   wrong, it is 5

    Where `fix_ts` is null, no fix of its own caused the change: the last one that had taken effect by then is meant.
    Changes without a place are groups, or were told before places were stored; they are passed over.

    Args:
        changes: rows of the table `changes`.
        events: what `events_of` gives.

    Returns:
        By query; those that have none are left out.
    """
    told = changes[changes["x"].notna()]
    fixes = events[events["kind"] == FIX]
    has_fix = told["fix_ts"].notna()
    fix_us = told["fix_ts"][has_fix].dt.as_unit("us").astype(np.int64)
    by_time = told[has_fix].assign(key=fix_us)
    by_place = told[~has_fix].assign(key=told["position"][~has_fix])
    wrong = [
        *_differing(by_time, fixes.assign(key=fixes["event"])),
        *_differing(by_place, fixes.assign(key=fixes["effect"])),
    ]
    return dict(Counter(wrong))


def _differing(told: pd.DataFrame, fixes: pd.DataFrame) -> list[str]:
    """The queries of rows that have another place than the last fix of their object whose key is not larger."""
    if told.empty:
        return []
    ordered = fixes.sort_values("key", kind="stable")[["key", "object", *_PLACE]]
    both = pd.merge_asof(
        told[["key", "object", "query", *_PLACE]].sort_values("key", kind="stable"),
        ordered,
        on="key",
        by="object",
        suffixes=("", "_of_fix"),
    )
    same = (both["x"] == both["x_of_fix"]) & (both["y"] == both["y_of_fix"])
    return list(both["query"][~same])
