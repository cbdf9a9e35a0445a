"""What a query must answer at a moment of a history: who is a member, what is counted, with which values.

Every answer is found anew from what is known at that moment; nothing is kept between two of them. Doubts about
distances on degrees are said: what is `sure` must be in an answer, all else may be.

VALID UNTIL: members were told the right time last (SPEC G8).

    told + at 10: until 14      reports at 12: until 14      reports at 13: until 15, and is told so
                                the same, so nothing is told

So what was told last is right if it is the time that follows from the last report of the member, and of the object
that the region goes with, or from when it came in, if that was later. When it came in is taken from what was told.
Reports of the tick that was open when the query was registered are not told of, for some came before it: members that
reported last then are passed over.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from st_common.checks.history import FIX, LATER, NEVER, Era, History, Moment, Registered
from st_common.checks.windows import Framed, framed, of_ways, open_stays
from st_common.query.frame import Frame
from st_common.query.plan import Plan, asks_ways
from st_common.reference import members as reference
from st_common.reference.aggregate import Shown, groups
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import SCALED, Bools, Ints, Members, Objects, Point
from st_common.reference.pair_join import Joined
from st_common.reference.ranges import inside
from st_common.reference.staying import stays_for
from st_common.reference.window import counting
from st_common.regions.region import AroundObject

if TYPE_CHECKING:
    from st_common.reference.travelled import OfWays

FeaturesOf = Callable[[], Features]
"""The features that a plan joins; never asked for without a join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a query tells of or counts, as columns of one length: fixes by their rows among the events of a history.

    `partner` is what each is joined with (None without one), of fixes in windows their time as a text. `framed` has
    those that are in windows along the way.
    """

    rows: Ints
    partner: Objects
    sure: Bools
    framed: Framed | None = None

    def take(self, which: Ints) -> "Counted":
        """Some of them, by their places."""
        return Counted(
            rows=self.rows[which],
            partner=self.partner[which],
            sure=self.sure[which],
            framed=None if self.framed is None else self.framed.take(which),
        )


def counted(query: Registered, history: History, moment: Moment) -> Counted:
    """What a query tells of or counts: fixes in windows along the way, entries of a window, or members."""
    plan = query.plan
    if plan.frame is not None:
        return rows_in_windows(query, plan.frame, history, moment)
    if plan.window is not None:
        return _entries(query, history, moment)
    return members_at(query, history, moment)


def values_of(query: Registered, found: Counted, history: History) -> dict[str, Shown]:
    """The values of the groups of a query, without what asks about them."""
    plan = query.plan
    if plan.aggregate is None:
        return {}
    said: OfWays = {}
    if found.framed is not None and plan.frame and asks_ways(plan.aggregate):
        said = of_ways(plan.frame, found.framed, unit_m=history.source.unit_m)
    if plan.aggregate.function == "avgspd":
        return dict(said["avgspd"])
    fixes = history.fixes.take(found.rows)
    every = np.arange(len(fixes))
    features = features_at(query, history)
    return groups(plan.aggregate, fixes, every, found.partner, features, said)


def known_values(
    query: Registered, history: History, moment: Moment, values: Mapping[str, Shown]
) -> Mapping[str, Shown]:
    """The values that are told: a count of nothing waits for the first tick."""
    count = sum(map(_counted_in, values.values()))
    is_nothing = {*values} == {"*"} and not count
    return {} if is_nothing and not _has_time(query, history, moment) else values


def _counted_in(shown: Shown) -> float:
    """0 of what says that nothing is counted; of all else more."""
    parts = shown.values() if isinstance(shown, Mapping) else [shown]
    return sum(abs(part) for part in parts if isinstance(part, float | int))


def _has_time(query: Registered, history: History, moment: Moment) -> bool:
    """Whether the stream had a time when the query was registered, or has come to a tick since."""
    return bool(history.clock.at(query.position) != NEVER or len(moment.judged))


def rows_in_windows(
    query: Registered, frame: Frame, history: History, moment: Moment
) -> Counted:
    """The fixes in a query's windows, of the objects that count now; the partner is the time of each."""
    stays = open_stays(frame, history, moment, query.position)
    fixes = history.fixes.take(stays.rows)
    own = rows_of_frame(query.plan, frame, fixes)
    kept, is_sure = framed(frame, stays, fixes, own, history, moment)
    found = Counted(
        rows=kept.rows,
        partner=stamps_of(history.events.ts[kept.rows]),
        sure=is_sure,
        framed=kept,
    )
    plan = replace(query.plan, frame=None, where=None, aggregate=None, columns=())
    if plan == Plan(stream=plan.stream, order=plan.order, emit=plan.emit):
        return found
    present = members_at(
        query.with_plans(lambda _: plan), history, moment, by_ticks=True
    )
    code = history.events.code
    some, certain = code[present.rows], code[present.rows[present.sure]]
    here = np.flatnonzero(np.isin(code[found.rows], some))
    found = found.take(here)
    return replace(found, sure=found.sure & np.isin(code[found.rows], certain))


def rows_of_frame(plan: Plan, frame: Frame, fixes: Fixes) -> Members:
    """The fixes that satisfy the condition of a query with windows, and its regions."""
    own = reference.qualified(Plan(stream=plan.stream, where=plan.where), fixes)
    for region in frame.regions:
        own &= inside(region, fixes)
    return own


def stamps_of(event_us: Ints) -> Objects:
    """Times as the partners of rows."""
    stamps = np.datetime_as_string(event_us.astype("datetime64[us]"))
    return objects([f"{stamp}Z" for stamp in stamps])


def members_at(
    query: Registered, history: History, moment: Moment, *, by_ticks: bool = False
) -> Counted:
    """The members by the last fixes: all of them, or at the last tick that was due, or when it was judged at once."""
    by_ticks = by_ticks or query.plan.by_ticks
    known = judged_rows(query, history, moment) if by_ticks else moment.seen
    alive = history.events.alive(known)
    features = features_at(query, history)
    pairs = reference.members(query.plan, history.fixes.take(alive), features)
    return _counted_of(alive, pairs)


def _counted_of(rows: Ints, pairs: Joined) -> Counted:
    return Counted(
        rows=rows[pairs.row],
        partner=pairs.partner,
        sure=np.asarray(pairs.sure, bool),
    )


def judged_rows(query: Registered, history: History, moment: Moment) -> Ints:
    """The events that were judged at ticks; before the first tick those by which the query was judged at once."""
    at_once = query.judged_at
    due = history.events.due[moment.judged]
    if len(due) and int(due.max()) > at_once:
        return moment.judged
    seen = moment.seen
    return seen[history.events.effect[seen] < at_once]


def features_at(query: Registered, history: History) -> FeaturesOf:
    """The features of the layer that a query joins, of the version that it has now."""
    return features_in(query.eras[-1], history)


def features_in(era: Era, history: History) -> FeaturesOf:
    """The features of the layer that a plan joins in an era."""

    def features() -> Features:
        join, version = era.plan.join, era.layer_version
        assert join is not None  # noqa: S101 - for the type: else none asks
        assert version is not None  # noqa: S101 - likewise
        return history.source.features(join.layer, version)

    return features


def qualified_in(query: Registered, history: History, rows: Ints) -> Counted:
    """The fixes among rows that qualify when they come, with their partners by the version of the layer there was."""
    effect, parts = history.events.effect[rows], []
    for era, stop in query.spans():
        own = rows[(effect > era.position) & (effect < stop)]
        fixes = history.fixes.take(own)
        eligible = reference.qualified(era.plan, fixes)
        features = features_in(era, history)
        pairs = reference.joined(era.plan, fixes, eligible, features)
        parts.append(_counted_of(own, pairs))
    return Counted(
        rows=np.concatenate([one.rows for one in parts]),
        partner=np.concatenate([one.partner for one in parts]),
        sure=np.concatenate([one.sure for one in parts]),
    )


def _entries(query: Registered, history: History, moment: Moment) -> Counted:
    """The fixes in the query's window."""
    events, rows = history.events, moment.judged
    came = (events.effect[rows] > query.position) & (events.kind[rows] == FIX)
    entries, window = qualified_in(query, history, rows[came]), query.plan.window
    assert window is not None  # noqa: S101 - for the type: only windows have entries
    counts = counting(
        window,
        moment.tick_us,
        event_us=events.ts[entries.rows],
        effect=events.effect[entries.rows],
        ids=history.fixes.ids[entries.rows],
        partners=entries.partner,
    )
    return entries.take(np.flatnonzero(counts))


def tick_at(query: Registered, history: History) -> int:
    """The tick that was open when the query was registered."""
    clock_us, tick_us = history.clock.at(query.position), history.times.tick_us
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
ToldUntil = Mapping[tuple[str, str], tuple[float, int]]
"""What was told last of each member: the second until which it stays, and when that was told, in microseconds."""


def wrongly_told(
    query: Registered, history: History, moment: Moment, told: ToldUntil
) -> int:
    """How many members were told another time than they should; those in doubt are passed over."""
    plan, events, of = query.plan, history.events, history.fixes.metric
    found = members_at(query, history, moment)
    focal = focal_of(plan, history, judged_rows(query, history, moment))
    first_tick, wrong = tick_at(query, history), 0
    columns = found.rows.tolist(), found.partner, found.sure.tolist()
    for row, partner, is_sure in zip(*columns, strict=True):
        key = history.fixes.ids[row], partner or ""
        if not is_sure or key not in told:
            continue
        told_s, told_us = told[key]
        reports = [one for one in (row, focal) if one is not None]
        is_first = (events.effect[reports] > query.position) & (
            events.tick[reports] <= first_tick
        )
        if is_first.any():
            continue
        is_told = (events.due[reports] != LATER) & (events.tick[reports] > first_tick)
        at_us = max([told_us, *events.tick[reports][is_told].tolist()])
        should_s, left_s = stays_until(plan, history, row, focal, at_us)
        share = _SHARE if of.is_flat else 2 * SCALED
        wrong += not _is_same(told_s, should_s, _SAME_S + share * left_s)
    return wrong


def focal_of(plan: Plan, history: History, known: Ints) -> int | None:
    """The last event of the object that the region goes with; None of a region that stands still."""
    if not isinstance(plan.inside, AroundObject):
        return None
    alive = history.events.alive(known)
    rows = alive[history.fixes.ids[alive] == plan.inside.focal]
    return next(iter(rows.tolist()), None)


def stays_until(
    plan: Plan, history: History, row: int, focal: int | None, at_us: int
) -> tuple[float, float]:
    """The second until which a member stays, NaN where none can be said; and how many seconds that is from then.

    It and the focal object keep their last velocities, and set off at that time from where they were read last.
    """
    velocity, other = _velocity(history, row), None
    if focal is not None:
        other = _velocity(history, focal)
    if velocity is None or plan.inside is None or (focal is not None and not other):
        return np.nan, 0.0
    pair = None if other is None or focal is None else (_place(history, focal), other)
    own = _place(history, row)
    left_s = stays_for(plan.inside, own, velocity, pair, history.fixes.metric)
    return at_us / 1e6 + left_s, left_s if np.isfinite(left_s) else 0.0


def _place(history: History, row: int) -> Point:
    return float(history.fixes.x[row]), float(history.fixes.y[row])


def _velocity(history: History, row: int) -> Point | None:
    """Coordinates per second since the fix before in the same stay."""
    events, fixes, metric = history.events, history.fixes, history.fixes.metric
    before = int(events.before[row])
    elapsed_s = (int(events.ts[row]) - int(events.ts[before])) / 1e6
    if before < 0 or not elapsed_s > 0:
        return None
    way = float(metric.shortest(np.array(fixes.x[row] - fixes.x[before])))
    return way / elapsed_s, float(fixes.y[row] - fixes.y[before]) / elapsed_s


def _is_same(told_s: float, should_s: float, within_s: float) -> bool:
    if np.isfinite(told_s) and np.isfinite(should_s):
        return abs(told_s - should_s) <= within_s
    return told_s == should_s or bool(np.isnan(told_s) and np.isnan(should_s))
