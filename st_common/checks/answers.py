"""What must be in an answer: brute force over the table `positions`, at the last tick that was due (SPEC X1).

VALID UNTIL: members were told the right time last (SPEC G8).

    told + at 10: until 14      reports at 12: until 14      reports at 13: until 15, and is told so
                                the same, so nothing is told

So what was told last is right if it is the time that follows from the last report of the member, and of the object
that the region goes with, or from when it came in, if that was later. When it came in is taken from what was told.
Reports of the tick that was open when the query was registered are not told of, for some came before it: members that
reported last then are passed over.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from st_common.checks.archived import History
from st_common.checks.expressions import (
    FeaturesOf,
    features_of,
    fixes_of,
    members,
    partnered,
    qualified,
)
from st_common.checks.history import FIX, LATER, NEVER, Registered, alive
from st_common.checks.nested import (
    answer_above,
    chosen_of,
    moments_of,
    moments_since,
    rows_of_groups,
    rows_of_members,
)
from st_common.checks.windows import framed, of_ways, open_stays
from st_common.query.frame import Frame
from st_common.query.near_columns import names_near
from st_common.query.pair_columns import BORDER, DISTANCE, NEAREST, pair_names
from st_common.query.plan import Outer, Plan, asks_ways
from st_common.reference.aggregate import Shown, groups
from st_common.reference.columns import Features
from st_common.reference.metric import SCALED, Metric, Point
from st_common.reference.ranges import inside
from st_common.reference.staying import stays_for
from st_common.reference.window import counting
from st_common.regions.region import AroundObject

if TYPE_CHECKING:
    from st_common.reference.travelled import OfWays

Name = tuple[Any, ...]
NamedRows = dict[Name, dict[str, Any]]
"""Rows by what names them among the others."""

Answer = set[tuple[Any, ...]]
"""Pairs of an object and its partner, or groups and the texts of their values."""


def expected_answer(
    query: Registered, history: History
) -> tuple[Answer, Answer | None]:
    """What must be in the answer, and what may be in it (None: anything): the same but for doubts about distances."""
    if query.plan.outer is not None:
        return _answer_of_rows(query, query.plan.outer, history)
    plan, found = query.plan, _counted(query, history)
    if plan.aggregate is None:
        pairs = list(
            zip(found["object"], found["partner"].fillna("").astype(str), strict=True)
        )
        return {
            pair for pair, is_sure in zip(pairs, found["sure"], strict=True) if is_sure
        }, set(pairs)
    told = _texts(_known(query, history, _values(query, found, history)))
    if found["sure"].all() and not _is_speed_on_globe(plan, history):
        return told, told
    return set(), None  # doubts about members, or metres, are doubts about all values


def _counted(query: Registered, history: History) -> pd.DataFrame:
    """What a query tells of or counts: fixes in windows along the way, entries of a window, or members."""
    plan = query.plan
    if plan.frame is not None:
        return rows_in_windows(query, plan.frame, history)
    if plan.window is not None:
        return _entries(query, history)
    return members_now(query, history)


def _values(
    query: Registered, found: pd.DataFrame, history: History
) -> dict[str, Shown]:
    """The values of the groups of a query, without what asks about them."""
    plan = query.plan
    if plan.aggregate is None:
        return {}
    said: OfWays = {}
    if plan.frame is not None and asks_ways(plan.aggregate):
        said = of_ways(plan.frame, found, unit_m=history.unit_m)
    if plan.aggregate.function == "avgspd":
        return dict(said["avgspd"])
    counted = fixes_of(found, history.of)
    partners = found["partner"].to_numpy(object)
    features = _features(query, history, len(query.layers) - 1)
    return groups(plan.aggregate, counted, counted.rows, partners, features, said)


def _known(
    query: Registered, history: History, values: Mapping[str, Shown]
) -> Mapping[str, Shown]:
    """The values that are told: a count of nothing waits for the first tick."""
    count = sum(map(_counted_in, values.values()))
    is_nothing = {*values} == {"*"} and not count
    return {} if is_nothing and not _has_time(query, history) else values


def _counted_in(shown: Shown) -> float:
    """0 of what says that nothing is counted; of all else more."""
    parts = shown.values() if isinstance(shown, Mapping) else [shown]
    return sum(abs(part) for part in parts if isinstance(part, float | int))


def _texts(values: Mapping[str, Shown]) -> Answer:
    """Groups and the texts of their values."""
    return {(group, value_text(value)) for group, value in values.items()}


def _answer_of_rows(
    query: Registered, outer: Outer, history: History
) -> tuple[Answer, Answer | None]:
    """The same of a query about the rows of another one, judged at ticks; doubts about one are about all."""
    inner = replace(
        query,
        plan=replace(query.plan, outer=None, emit="changes"),
        plans=tuple(replace(plan, outer=None, emit="changes") for plan in query.plans),
    )
    now = _named_rows(inner, history)
    if now is None:
        return set(), None
    if outer.window is not None or outer.lasting_s is not None:
        counting = _lately if outer.window is not None else _settled
        now = counting(inner, outer, now, history)
        if now is None:
            return set(), None
        outer = replace(outer, where=None)
    above = answer_above(outer, list(now.values()))
    if above.values is None:
        names = list(now)
        told: Answer = {names[place][:2] for place in above.chosen}
    else:
        told = _texts(_known(query, history, above.values))
    return told, told


def _named_rows(inner: Registered, history: History) -> NamedRows | None:
    """The rows of a query by what names them; None where it is not beyond doubt which there are.

    Those of an answer are named by an object and its partner, groups also by the text of their value.
    """
    found = _rows_below(inner, history)
    if not found["sure"].all() or _is_measured(inner.plan, history):
        return None
    if inner.plan.aggregate is None:
        others = alive(judged_events(inner, history))
        features = _features(inner, history, len(inner.layers) - 1)
        rows = rows_of_members(inner.plan, found, others, history.of, features)
        partners = found["partner"].fillna("").astype(str)
        names: list[Name] = list(zip(found["object"], partners, strict=True))
        if inner.plan.frame is not None:
            # Rows of windows are fixes: several of one object.
            names = [(*name, place) for place, name in enumerate(names)]
    else:
        values = _known(inner, history, _values(inner, found, history))
        rows = rows_of_groups(inner.plan, values)
        names = [(group, value_text(value)) for group, value in values.items()]
    return dict(zip(names, rows, strict=True))


def _lately(
    inner: Registered, outer: Outer, now: NamedRows, history: History
) -> NamedRows | None:
    """The rows that were chosen and count on; None where regions became others meanwhile, or it takes too long."""
    moments = moments_of(inner.position, outer, history)
    if len(inner.layers) > 1 or inner.plan.frame is not None or moments is None:
        return None
    known: dict[Name, tuple[Name, dict[str, Any]]] = {}
    for then in (*(_named_rows(inner, moment) for moment in moments), now):
        if then is None:
            return None
        chosen = chosen_of(outer, then)
        is_group = inner.plan.aggregate is not None
        known |= {
            name[: 1 if is_group else None]: (name, then[name]) for name in chosen
        }
    return dict(known.values())


def _settled(
    inner: Registered, outer: Outer, now: NamedRows, history: History
) -> NamedRows | None:
    """The rows that were chosen long enough; None where nobody knows, as for `_lately`."""
    moments = moments_since(inner.position, outer.lasting_s or 0.0, history)
    if len(inner.layers) > 1 or inner.plan.frame is not None or moments is None:
        return None
    known = slice(0, 1 if inner.plan.aggregate is not None else None)
    chosen = {name[known]: name for name in chosen_of(outer, now)}
    for then in (_named_rows(inner, moment) for moment in moments):
        if then is None:
            return None
        there = {name[known] for name in chosen_of(outer, then)}
        chosen = {key: name for key, name in chosen.items() if key in there}
    return {name: now[name] for name in chosen.values()}


def _rows_below(inner: Registered, history: History) -> pd.DataFrame:
    """What the rows are or count that another query asks about, judged at ticks; members of a window once each."""
    plan = inner.plan
    if plan.frame is None and plan.window is None:
        return members_now(inner, history, by_ticks=True)
    found = _counted(inner, history)
    if plan.window is None or plan.aggregate is not None:
        return found
    return found.drop_duplicates(["object", "partner"])


def _is_measured(plan: Plan, history: History) -> bool:
    """Whether values depend on how exactly metres are measured, also those to features and to the place of KNN."""
    if any(names_near(text) for _, text in plan.columns):
        return not history.of.space.is_flat
    named = {name for _, text in plan.columns for name in pair_names(text)}
    # Of equally near points either may be the nearest.
    is_far = bool(named & {*NEAREST, DISTANCE, BORDER})
    is_exact = history.of.space.is_flat and not named & {*NEAREST}
    return (plan.join is not None and is_far and not is_exact) or _is_speed_on_globe(
        plan, history
    )


def _is_speed_on_globe(plan: Plan, history: History) -> bool:
    """Whether values depend on how exactly metres are measured."""
    return asks_ways(plan.aggregate) and not history.of.space.is_flat


def answer_before(
    query: Registered, history: History, position: int, event_us: int
) -> Answer | None:
    """What may have been in the answer before a row of the log, or before a time (None: anything)."""
    if query.position >= position:
        return set()
    eras = [era for era in query.layers if era[0] < position]
    plan = query.plan_in(max(len(eras) - 1, 0))
    plans = query.plans[: len(eras)]
    then = replace(query, plan=plan, layers=tuple(eras), plans=plans)
    return expected_answer(then, history.before(position, event_us))[1]


def _has_time(query: Registered, history: History) -> bool:
    """Whether the stream had a time when the query was registered, or has come to a tick since."""
    clock = history.clock
    before = clock.after[clock.position < query.position]
    return bool((before != NEVER).any() or (history.events["due"] != LATER).any())


def rows_in_windows(query: Registered, frame: Frame, history: History) -> pd.DataFrame:
    """The fixes in a query's windows, of the objects that count now; the partner is the time of each."""
    rows = open_stays(frame, history.events, query.position)
    own = qualified(
        Plan(stream=query.plan.stream, where=query.plan.where), rows, history.of
    )
    fixes = fixes_of(rows, history.of)
    for region in frame.regions:
        own &= inside(region, fixes)
    found = framed(frame, rows, fixes, own, history)
    found = found.assign(
        partner=pd.to_datetime(found["ts"], unit="us").dt.strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ"
        )
    )
    plan = replace(query.plan, frame=None, where=None, aggregate=None, columns=())
    if plan == Plan(stream=plan.stream, order=plan.order, emit=plan.emit):
        return found
    present = members_now(replace(query, plan=plan), history, by_ticks=True)
    certain = present.loc[present["sure"].astype(bool), "object"]
    found = found[found["object"].isin(present["object"])]
    return found.assign(sure=found["sure"] & found["object"].isin(certain))


def members_now(
    query: Registered, history: History, *, by_ticks: bool = False
) -> pd.DataFrame:
    """The members by the last fixes: now, or at the last tick that was due, or when the query was judged at once."""
    by_ticks = by_ticks or query.plan.by_ticks
    events = judged_events(query, history) if by_ticks else history.events
    return members(
        query.plan,
        alive(events),
        _features(query, history, len(query.layers) - 1),
        history.of,
    )


def judged_events(query: Registered, history: History) -> pd.DataFrame:
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
        history.last_tick,
        event_us=entries["ts"].to_numpy(np.int64),
        effect=entries["effect"].to_numpy(np.int64),
        ids=entries["object"].to_numpy(object),
        partners=entries["partner"].to_numpy(object),
    )
    return entries[counts]


def tick_at(query: Registered, history: History) -> int:
    """The tick that was open when the query was registered."""
    clock_us = int(history.clock.just_before(np.array([query.position]))[0])
    tick_us = history.times.tick_us
    return -(-clock_us // tick_us) * tick_us if clock_us != NEVER else NEVER


def value_text(value: Shown) -> str:
    """Values are sums in some order of rows: to 9 digits, also where there are several."""
    if isinstance(value, Mapping):
        return json.dumps({name: _part(part) for name, part in value.items()})
    return "" if value is None or np.isnan(value) else f"{value:.9g}"


def _part(value: object) -> object:
    """One of several values, perhaps a list, or a key."""
    if isinstance(value, list):
        return [_part(one) for one in value]
    return f"{value:.9g}" if isinstance(value, float | int) else value


_SAME_S = (
    0.002  # a member is told anew where it is another time by more than half of it
)
_SHARE = 1e-6  # of the time that is left


def wrongly_told(
    plan: Plan,
    members: pd.DataFrame,
    told: pd.DataFrame,
    alive: pd.DataFrame,
    of: Metric,
    *,
    since: int,
    first_tick: int,
) -> int:
    """How many members were told another time than they should; those in doubt are passed over.

    `members` and `alive` are last events with what was before them, `told` what was told of each pair last, and when.
    The query was registered at the row `since` of the log, when `first_tick` was open.
    """
    focal = _focal(plan, alive)
    sure = members[members["sure"].astype(bool)]
    both = sure.assign(partner=sure["partner"].fillna("")).merge(
        told, on=["object", "partner"]
    )
    values = both["value"].astype(float).tolist()
    rows: list[Any] = list(both.itertuples())
    wrong = 0
    for row, told_s in zip(rows, values, strict=True):
        reports = [one for one in (row, focal) if one is not None]
        if any(one.effect > since and one.tick <= first_tick for one in reports):
            continue
        ticks = [one.tick for one in reports if _is_told(one, first_tick)]
        at_us = max([int(row.told_us), *ticks])
        should_s, left_s = _until(plan, row, focal, at_us, of)
        share = _SHARE if of.is_flat else 2 * SCALED
        wrong += not _is_same(told_s, should_s, _SAME_S + share * left_s)
    return wrong


def _is_told(report: Any, first_tick: int) -> bool:
    """Whether a report was judged at a tick at which it is told anew of."""
    return bool(report.due != LATER and report.tick > first_tick)


def _focal(plan: Plan, alive: pd.DataFrame) -> Any:
    """The last event of the object that the region goes with; None of a region that stands still."""
    if not isinstance(plan.inside, AroundObject):
        return None
    rows = alive[alive["object"] == plan.inside.focal]
    return next(rows.itertuples(), None)


def _until(
    plan: Plan, row: Any, focal: Any, at_us: int, of: Metric
) -> tuple[float, float]:
    """The second until which a member stays, NaN where none can be said; and how many seconds that is from then."""
    velocity, other = _velocity(row, of), None
    if focal is not None:
        other = _velocity(focal, of)
    if velocity is None or plan.inside is None or (focal is not None and not other):
        return np.nan, 0.0
    pair = None if other is None else ((focal.x, focal.y), other)
    left_s = stays_for(plan.inside, (row.x, row.y), velocity, pair, of)
    return at_us / 1e6 + left_s, left_s if np.isfinite(left_s) else 0.0


def _velocity(row: Any, of: Metric) -> Point | None:
    """Coordinates per second since the fix before in the same stay."""
    if not row.elapsed_s > 0:
        return None
    way = float(of.shortest(np.array(row.x - row.before_x)))
    return way / row.elapsed_s, (row.y - row.before_y) / row.elapsed_s


def _is_same(told_s: float, should_s: float, within_s: float) -> bool:
    if np.isfinite(told_s) and np.isfinite(should_s):
        return abs(told_s - should_s) <= within_s
    return told_s == should_s or bool(np.isnan(told_s) and np.isnan(should_s))
