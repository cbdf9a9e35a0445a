"""Does the answer hold? Brute force over the table `positions` against the folded changes (SPEC X1).

It shares nothing with the engines: which fixes count follows from running maxima over the whole history
(`verify_events`), and answers come from plain columns, shapely and DuckDB. Queries at ticks are judged at the last one
that was due.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from st_common import tables
from st_common.capture.log import Log
from st_common.errors import QueryError
from st_common.home import Home
from st_common.position import position_of
from st_common.query.fence import Fence
from st_common.query.frame import Frame
from st_common.query.incident import Incident
from st_common.query.plan import Plan
from st_common.reference.aggregate import groups
from st_common.reference.columns import Features
from st_common.reference.metric import SCALED
from st_common.reference.ranges import inside
from st_common.reference.window import counting
from st_common.serving.changes import stream_changes
from st_common.serving.verify_events import FIX, LATER, NEVER, alive
from st_common.serving.verify_fences import Lived, lived, rounded
from st_common.serving.verify_frames import framed, speeds, speeds_in_doubt, stays
from st_common.serving.verify_history import History, history_of
from st_common.serving.verify_incidents import lived_incidents, told_incidents
from st_common.serving.verify_members import (
    FeaturesOf,
    features_of,
    fixes_of,
    members,
    partnered,
    qualified,
)
from st_common.serving.verify_moving_fences import lived_at_ticks
from st_common.serving.verify_registered import Registered, controls_of, registered_by
from st_common.serving.verify_until import wrongly_told
from st_common.settings import StreamSettings

_Answer = set[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found of one query at a log position: members that are missing from its answer, members too many.

    A group of an aggregate that has another value is both, and so is a member that was told another VALID UNTIL. Metres
    on degrees are measured in two ways that differ by up to 0.01 %: average speeds may differ by that, and objects of
    which a fix is in doubt by more. Not `checked` are other values over members that are in doubt. Of a fence all
    events count, also those that lead to no answer, but for visits that are in doubt. `unchecked` says what was not
    looked at, or why.
    """

    query: str
    position: int
    members: int
    missing: int
    extra: int
    checked: bool = True
    unchecked: str = ""

    @property
    def holds(self) -> bool:
        """Whether the folded changes equal the brute force."""
        return not self.missing and not self.extra


def verify(
    home: Home, stream: StreamSettings, query: str | None = None
) -> list[Verified]:
    """The answer of one query, or of all that are registered, checked up to where both tables reach.

    Raises:
        QueryError: there is no such query at that position, or nothing was archived yet.
    """
    end = _reached(home, stream)
    controls = controls_of(Log(home.log(stream.name)), end)
    registered = registered_by(controls, stream.unit_m)
    if query is not None and query not in registered:
        raise QueryError(
            f"stream {stream.name!r} has no query {query!r}",
            hint="`fairway query list` names them",
        )
    history = history_of(home, stream, controls, end)
    changes = stream_changes(home, stream.name).to_pandas()
    changes = changes[changes["position"] < end]
    names = [query] if query is not None else list(registered)
    return [_verified(registered[name], history, changes, end) for name in names]


def _reached(home: Home, stream: StreamSettings) -> int:
    """The place after the last row that both `changes` and `positions` have."""
    engine = tables.committed(home.table("changes", stream.name), "engine")
    archive = tables.committed(
        home.table("positions", stream.name), f"archive-{stream.name}"
    )
    if engine is None or archive is None:
        raise QueryError(
            f"stream {stream.name!r} has nothing to verify yet",
            hint=f"`fairway run {stream.name}` first",
        )
    return min(engine + 1, position_of(archive + 1, 0))


def _verified(
    query: Registered, history: History, changes: pd.DataFrame, end: int
) -> Verified:
    mine = changes[changes["query"] == query.name].sort_values(["position", "seq"])
    if query.plan.fence is not None:
        return _verified_fence(query, query.plan.fence, history, mine, end)
    if query.plan.incident is not None:
        return _verified_incidents(query, query.plan.incident, history, mine, end)
    last = (
        mine[mine["sign"] != 0]
        .assign(partner=mine["partner"].fillna(""))
        .groupby(["object", "partner"])
        .tail(1)
    )
    held = last[last["sign"] > 0]
    frame, aggregate = query.plan.frame, query.plan.aggregate
    if (
        frame is not None
        and aggregate is not None
        and aggregate.function == "avgspd"
        and not history.of.space.is_flat
    ):
        return _verified_speeds(
            query, speeds_in_doubt(frame, _rows(query, frame, history)), held, end
        )
    sure, maybe = _expected(query, history)
    if aggregate is not None:
        folded: _Answer = set(
            zip(held["object"], held["value"].map(_rounded), strict=True)
        )
    else:
        folded = set(zip(held["object"], held["partner"], strict=True))
    extra = 0 if maybe is None else len(folded - maybe)
    other = _other_times(query, history, mine) if query.plan.valid_until else 0
    return Verified(
        query=query.name,
        position=end,
        members=len(folded if maybe is None else maybe),
        missing=len(sure - folded) + other,
        extra=extra + other,
        checked=maybe is not None,
        unchecked=""
        if maybe is not None
        else "its values depend on how exactly metres are measured",
    )


def _other_times(query: Registered, history: History, mine: pd.DataFrame) -> int:
    """How many members were told last that they stay until another time than they do."""
    told = mine[mine["sign"] >= 0].assign(partner=mine["partner"].fillna(""))
    told_us = told["event_ts"].dt.as_unit("us").astype(np.int64)
    told = told.assign(told_us=told_us).groupby(["object", "partner"]).tail(1)
    told = told[["object", "partner", "value", "told_us"]]
    members_now, here = _members(query, history), alive(_judged(query, history))
    return wrongly_told(
        query.plan,
        members_now,
        told,
        here,
        history.of.metric,
        since=query.position,
        first_tick=_tick_at(query, history),
    )


def _tick_at(query: Registered, history: History) -> int:
    """The tick that was open when the query was registered."""
    clock_us = int(history.clock.just_before(np.array([query.position]))[0])
    tick_us = history.times.tick_us
    return -(-clock_us // tick_us) * tick_us if clock_us != NEVER else NEVER


def _verified_fence(
    query: Registered, fence: Fence, history: History, mine: pd.DataFrame, end: int
) -> Verified:
    """All events of a fence, each at its row of the log, and so its answer, but for visits that are in doubt."""
    live = lived_at_ticks if query.plan.by_ticks else lived
    life = live(query, fence, history)
    start = max(query.kept, default=query.position)
    own = mine[(mine["query_version"] == query.version) & (mine["position"] >= start)]
    columns = (own[name].tolist() for name in _TOLD)
    event_us = own["event_ts"].dt.as_unit("us").astype(np.int64).tolist()
    found = Counter(
        (*row[:5], at_us, rounded(row[5]))
        for row, at_us in zip(zip(*columns, strict=True), event_us, strict=True)
    )
    expected = Counter(row for row in life.told if row[0] >= start)
    missing, extra = (
        sum(count for row, count in rows.items() if not life.is_doubtful(row))
        for rows in (expected - found, found - expected)
    )
    return Verified(
        query=query.name,
        position=end,
        members=len(life.inside) if fence.has_answer else 0,
        missing=missing,
        extra=extra,
        unchecked=_visits_in_doubt(life),
    )


def _verified_incidents(
    query: Registered,
    incident: Incident,
    history: History,
    mine: pd.DataFrame,
    end: int,
) -> Verified:
    """All that was told of incidents, each at its row of the log, and so the open ones, but for what is in doubt."""
    life = lived_incidents(query, incident, history)
    found = told_incidents(mine[mine["query_version"] == query.version], incident)
    expected = Counter(life.told)
    missing, extra = (
        sum(count for row, count in rows.items() if not life.is_doubtful(row))
        for rows in (expected - found, found - expected)
    )
    return Verified(
        query=query.name,
        position=end,
        members=len(life.inside),
        missing=missing,
        extra=extra,
        unchecked=_visits_in_doubt(life),
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
    query: Registered, expected: pd.DataFrame, held: pd.DataFrame, end: int
) -> Verified:
    """Average speeds on degrees: equal up to how exactly metres are measured, where no fix is in doubt."""
    told = held.set_index("object")["value"].reindex(expected.index)
    same = np.isclose(
        told, expected["speed"], rtol=2 * SCALED, atol=1e-9, equal_nan=True
    )
    present = expected.index.isin(held["object"])
    wrong = expected["sure"] & ~(same & present)
    extra = int((~held["object"].isin(expected.index)).sum()) + int(
        (wrong & present).sum()
    )
    return Verified(
        query=query.name,
        position=end,
        members=len(held),
        missing=int(wrong.sum()),
        extra=extra,
    )


def _rounded(value: float | None) -> str:
    """Values are sums in some order of rows: to 9 digits."""
    return "" if value is None or np.isnan(value) else f"{value:.9g}"


def _expected(query: Registered, history: History) -> tuple[_Answer, _Answer | None]:
    """What must be in the answer, and what may be in it (None: anything): the same but for doubts about distances."""
    plan = query.plan
    if plan.frame is not None:
        found = _rows(query, plan.frame, history)
    else:
        found = (
            _entries(query, history)
            if plan.window is not None
            else _members(query, history)
        )
    if plan.aggregate is None:
        pairs = list(
            zip(found["object"], found["partner"].fillna("").astype(str), strict=True)
        )
        return {
            pair for pair, is_sure in zip(pairs, found["sure"], strict=True) if is_sure
        }, set(pairs)
    if plan.frame is not None and plan.aggregate.function == "avgspd":
        values = speeds(plan.frame, found, unit_m=history.unit_m)
    else:
        counted = fixes_of(found, history.of)
        partners = found["partner"].to_numpy(object)
        values = groups(plan.aggregate, counted, counted.rows, partners)
    if values == {"*": 0.0} and not _has_time(query, history):
        values = {}  # a count of nothing waits for the first tick
    told: _Answer = {(group, _rounded(value)) for group, value in values.items()}
    if found["sure"].all():
        return told, told
    return set(), None  # doubts about members are doubts about all values


def _has_time(query: Registered, history: History) -> bool:
    """Whether the stream had a time when the query was registered, or has come to a tick since."""
    clock = history.clock
    before = clock.after[clock.position < query.position]
    return bool((before != NEVER).any() or (history.events["due"] != LATER).any())


def _rows(query: Registered, frame: Frame, history: History) -> pd.DataFrame:
    """The fixes in a query's windows, of the objects that count now; the partner is the time of each."""
    fixes = stays(frame, history.events, query.position)
    own = qualified(
        Plan(stream=query.plan.stream, where=query.plan.where), fixes, history.of
    )
    for region in frame.regions:
        own &= inside(region, fixes_of(fixes, history.of))
    found = framed(frame, fixes, own, history.events, history.clock, history.times)
    found = found.assign(
        partner=pd.to_datetime(found["ts"], unit="us").dt.strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ"
        )
    )
    plan = replace(query.plan, frame=None, where=None, aggregate=None, columns=())
    if plan == Plan(stream=plan.stream, order=plan.order, emit=plan.emit):
        return found
    members_now = _members(replace(query, plan=plan), history, by_ticks=True)
    certain = members_now.loc[members_now["sure"].astype(bool), "object"]
    found = found[found["object"].isin(members_now["object"])]
    return found.assign(sure=found["sure"] & found["object"].isin(certain))


def _members(
    query: Registered, history: History, *, by_ticks: bool = False
) -> pd.DataFrame:
    """The members by the last fixes: now, or at the last tick that was due, or when the query was judged at once."""
    by_ticks = by_ticks or query.plan.by_ticks
    events = _judged(query, history) if by_ticks else history.events
    return members(
        query.plan,
        alive(events),
        _features(query, history, len(query.layers) - 1),
        history.of,
    )


def _judged(query: Registered, history: History) -> pd.DataFrame:
    """The events that were judged at ticks; before the first tick those by which the query was judged at once."""
    events = history.events
    at_once = max([query.position, *(at for at, _ in query.layers)])
    judged = events[events["due"] != LATER]
    by_tick = len(judged) and int(judged["due"].max()) > at_once
    return judged if by_tick else events[events["effect"] < at_once]


def _features(query: Registered, history: History, version: int) -> FeaturesOf:
    def features() -> Features:
        assert query.plan.join is not None  # noqa: S101 - for the type: else none asks
        return features_of(history.home, query.plan.join, query.layers[version][1])

    return features


def _entries(query: Registered, history: History) -> pd.DataFrame:
    """The fixes in the query's window, with their partners by the version of the layer that was there then."""
    events = history.events
    events = events[(events["effect"] > query.position) & (events["kind"] == FIX)]
    events = events[events["due"] != LATER]
    starts = [at for at, _ in query.layers] or [query.position]
    spans = zip(starts, [*starts[1:], LATER], strict=True)
    parts = [
        partnered(
            query.plan_in(era),
            events[(events["effect"] > start) & (events["effect"] < stop)],
            _features(query, history, era),
            history.of,
        )
        for era, (start, stop) in enumerate(spans)
    ]
    entries, window = pd.concat(parts), query.plan.window
    assert window is not None  # noqa: S101 - for the type: only windows have entries
    counts = counting(
        window,
        _last_tick(history),
        event_us=entries["ts"].to_numpy(np.int64),
        effect=entries["effect"].to_numpy(np.int64),
        ids=entries["object"].to_numpy(object),
        partners=entries["partner"].to_numpy(object),
    )
    return entries[counts]


def _last_tick(history: History) -> int:
    """The last tick that was judged: one that the clock is past, or one at an end mark."""
    due = history.events[history.events["due"] != LATER]
    last = int(due["tick"].max()) if len(due) else 0
    tick_us = history.times.tick_us
    return max(last, (history.clock.now - 1) // tick_us * tick_us)
