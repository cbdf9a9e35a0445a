"""What a query must answer at a moment of a history: who is a member, what is counted, with which values.

Every answer is found anew from what is known at that moment; nothing is kept between two of them. Doubts about
distances on degrees are said: what is `sure` must be in an answer, all else may be. On degrees engines measure legs to
0.01 %: a fix that is in windows only with a little more or less way may be in the answer or not.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from st_common.checks.history import FIX, NEVER, Era, History, Moment, Registered, Times
from st_common.query.frame import Frame, Sliding
from st_common.query.plan import Plan, asks_ways
from st_common.reference import members as reference
from st_common.reference import sessions, sliding, travelled
from st_common.reference.aggregate import Shown, groups
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.members import FeaturesOf
from st_common.reference.metric import Bools, Ints, Members, Objects, Point
from st_common.reference.pair_join import Joined
from st_common.reference.ranges import inside
from st_common.reference.staying import stays_for
from st_common.reference.travelled import OfWays, Ways, outlives, units
from st_common.reference.window import counting
from st_common.regions.region import AroundObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed:
    """The fixes of stays that a frame may hold, at a moment.

    Attributes:
        rows: their rows among the events of the history, ascending.
        ways: how far their objects had come at each of them.
        own: those that satisfy the query's condition and its regions, as many of an object as are kept.
        ticks: at which the query was evaluated, as far as that moves windows.
        counting: the numbers of the objects that count for what the rest of the query asks; None: all.
    """

    rows: Ints
    ways: Ways
    own: Members
    ticks: Ints
    counting: Ints | None = None

    def ways_of(self, rows: Ints) -> Ways:
        """The ways of some of the fixes, by their rows among the events."""
        return self.ways.take(np.searchsorted(self.rows, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a query tells of or counts, as columns of one length: fixes by their rows among the events of a history.

    `partner` is what each is joined with (None without one), of fixes in windows their time as a text. `framed` are
    all fixes that windows along the way may hold.
    """

    rows: Ints
    partner: Objects
    sure: Bools
    framed: Framed | None = None

    def take(self, which: Ints) -> "Counted":
        """Some of them, by their places."""
        own = self.rows[which], self.partner[which], self.sure[which]
        return Counted(rows=own[0], partner=own[1], sure=own[2], framed=self.framed)


def counted(query: Registered, history: History, moment: Moment) -> Counted:
    """What a query tells of or counts: fixes in windows along the way, entries of a window, or members."""
    plan = query.plan
    if plan.frame is not None:
        return _rows_in_windows(query, plan.frame, history, moment)
    if plan.window is not None:
        return _entries(query, history, moment)
    return members_at(query, history, moment)


def values_of(query: Registered, found: Counted, history: History) -> dict[str, Shown]:
    """The values of the groups of a query, without what asks about them."""
    plan = query.plan
    if plan.aggregate is None:
        return {}
    of_ways: OfWays = {}
    if found.framed is not None and plan.frame and asks_ways(plan.aggregate):
        ways, unit_m = found.framed.ways_of(found.rows), history.source.unit_m
        of_ways = {
            function: {
                name: None if value is None else value * unit_m
                for name, value in values.items()
            }
            for function, values in travelled.of_ways(plan.frame, ways).items()
        }
    if plan.aggregate.function == "avgspd":
        return dict(of_ways["avgspd"])
    fixes = history.fixes.take(found.rows)
    every = np.arange(len(fixes))
    features = features_in(query.eras[-1], history)
    return groups(plan.aggregate, fixes, every, found.partner, features, of_ways)


def known_values(
    query: Registered, history: History, moment: Moment, values: Mapping[str, Shown]
) -> Mapping[str, Shown]:
    """The values that are emitted: a count of nothing waits for the first tick.

    That is when the stream had a time as the query was registered, or has come to a tick since.
    """
    count = sum(map(_counted_in, values.values()))
    is_nothing = {*values} == {"*"} and not count
    has_time = history.clock.at(query.position) != NEVER or len(moment.judged)
    return {} if is_nothing and not has_time else values


def _counted_in(shown: Shown) -> float:
    """0 of what says that nothing is counted; of all else more."""
    parts = shown.values() if isinstance(shown, Mapping) else [shown]
    return sum(abs(part) for part in parts if isinstance(part, float | int))


def members_at(
    query: Registered, history: History, moment: Moment, *, by_ticks: bool = False
) -> Counted:
    """The members by the last fixes: all of them, or at the last tick that was due, or when it was judged at once."""
    by_ticks = by_ticks or query.plan.by_ticks
    known = judged_rows(query, history, moment) if by_ticks else moment.seen
    alive = history.events.alive(known)
    features = features_in(query.eras[-1], history)
    pairs = reference.members(query.plan, history.fixes.take(alive), features)
    return _counted_of(alive, pairs)


def _counted_of(rows: Ints, pairs: Joined) -> Counted:
    sure = np.asarray(pairs.sure, bool)
    return Counted(rows=rows[pairs.row], partner=pairs.partner, sure=sure)


def judged_rows(query: Registered, history: History, moment: Moment) -> Ints:
    """The events that were judged at ticks; before the first tick those by which the query was judged at once."""
    at_once = query.judged_at
    due = history.events.due[moment.judged]
    if len(due) and int(due.max()) > at_once:
        return moment.judged
    seen = moment.seen
    return seen[history.events.effect[seen] < at_once]


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
        pairs = reference.joined(era.plan, fixes, eligible, features_in(era, history))
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


# -- windows along the way (CQL-S, SPEC W2-W5) -------------------------------------------------------------------------


def _rows_in_windows(
    query: Registered, frame: Frame, history: History, moment: Moment
) -> Counted:
    """The fixes in a query's windows, of the objects that count now; the partner is the time of each."""
    rows, begins = _open_stays(frame, history, moment, query.position)
    fixes = history.fixes.take(rows)
    ways = _ways_of(frame, rows, begins, fixes, history)
    own = reference.qualified(
        Plan(stream=query.plan.stream, where=query.plan.where), fixes
    )
    for region in frame.regions:
        own &= inside(region, fixes)
    newest = sliding.newest(ways, own.maybe, history.times.window_rows)
    own &= Members(sure=newest, maybe=newest)
    fewest, most = _ticks_of(
        frame, ways.take(np.flatnonzero(own.sure)), history, moment
    )
    doubts = fixes.metric.doubts
    one = other = sliding.in_windows(frame, ways, fewest, doubts=doubts)
    if most is not fewest:
        other = sliding.in_windows(frame, ways, most, doubts=doubts)
    open_now = _in_session(frame, ways, own, history.times, moment)
    kept = np.flatnonzero(open_now.maybe & (one.maybe | other.maybe))
    code = history.events.code
    sure = (open_now.sure & one.sure & other.sure)[kept]
    present = _objects_that_count(query, history, moment)
    if present is not None:
        here = np.isin(code[rows[kept]], code[present.rows])
        kept, sure = kept[here], sure[here]
        sure &= np.isin(code[rows[kept]], code[present.rows[present.sure]])
    counting_codes = None if present is None else np.unique(code[present.rows])
    stamps = np.datetime_as_string(ways.event_us[kept].astype("datetime64[us]"))
    return Counted(
        rows=rows[kept],
        partner=objects([f"{stamp}Z" for stamp in stamps]),
        sure=sure,
        framed=Framed(
            rows=rows, ways=ways, own=own, ticks=most, counting=counting_codes
        ),
    )


def _objects_that_count(
    query: Registered, history: History, moment: Moment
) -> Counted | None:
    """The objects that all clauses but the condition ask for, which is about fixes in windows; None: all."""
    own = query.plan
    plan = replace(own, frame=None, where=None, aggregate=None, columns=())
    if plan == Plan(stream=own.stream, order=own.order, emit=own.emit):
        return None
    plain = query.with_plans(lambda _: plan)
    return members_at(plain, history, moment, by_ticks=True)


def _open_stays(
    frame: Frame, history: History, moment: Moment, position: int
) -> tuple[Ints, Bools]:
    """The judged fixes after a row of the log that a frame may hold, and to which no way leads from the one before.

    Windows of time and of count have those of all stays of an object, others of the one that goes on.
    """
    events = history.events
    known = moment.judged[events.effect[moment.judged] > position]
    code, is_fix = events.code[known], events.kind[known] == FIX
    is_another = np.append(True, code[1:] != code[:-1])[: len(known)]
    begins = is_another | np.append(True, ~is_fix[:-1])[: len(known)]
    is_open = is_fix.copy()
    if not outlives(frame) and len(known):
        number = np.arange(len(known))
        last_end = np.full(int(code.max()) + 1, -1)
        np.maximum.at(last_end, code[~is_fix], number[~is_fix])
        is_open &= number > last_end[code]
    return known[is_open], begins[is_open]


def _ways_of(
    frame: Frame, rows: Ints, begins: Bools, fixes: Fixes, history: History
) -> Ways:
    """How far the objects of fixes had come at each of them."""
    return Ways(
        ids=fixes.ids,
        event_us=history.events.ts[rows],
        tick=history.events.tick[rows],
        begins=begins,
        number=travelled.numbers(fixes.ids),
        way_um=travelled.ways_um(
            fixes.ids,
            fixes.x,
            fixes.y,
            begins,
            min_step_m=frame.min_step_m,
            by=fixes.metric,
        ),
    )


def _in_session(
    frame: Frame, ways: Ways, rows: Members, times: Times, moment: Moment
) -> Members:
    """The rows of sessions that are open; where a row is in doubt, what it holds together is too."""
    if frame.session_s is None or not len(ways):
        return rows
    now, tick_us = moment.tick_us, times.tick_us
    sure, maybe = (
        sessions.in_session(frame.session_s, ways, known, now=now, tick_us=tick_us)
        for known in (rows.sure, rows.maybe)
    )
    return Members(sure=sure, maybe=maybe)


def _ticks_of(
    frame: Frame, own: Ways, history: History, moment: Moment
) -> tuple[Ints, Ints]:
    """The ticks at which a query surely was judged, and those at which it may have been.

    They are the same but for windows that hold nothing before they are full: with others it changes nothing whether
    the query was judged at the last tick of all.
    """
    happened = history.events.tick[moment.judged]
    if not len(happened):
        return happened, happened
    now, times = moment.tick_us, history.times
    by_itself = [
        times.tick_from(slid_us(window, frame, now))
        for window in frame.sliding
        if window.slide is not None and window.slide.by == "time"
    ]
    by_itself = [tick for tick in by_itself if tick <= now]
    if frame.full and len(frame.sliding) == 1 and _ages(frame.sliding[0]):
        # Beside another window a row may be behind that one, and is waited for no more.
        aged = times.tick_after(own.event_us + units(frame.sliding[0].range))
        by_itself += aged[(aged > own.tick) & (aged <= now)].tolist()
    fewest = np.unique(np.append(happened, np.array(by_itself, np.int64)))
    most = np.unique(np.append(fewest, now))
    return (fewest if frame.full and not moment.is_due else most), most


def slid_us(window: Sliding, frame: Frame, now_us: int) -> int:
    """When a window that slides by time last slid."""
    assert window.slide is not None  # noqa: S101 - for the type: others do not slide
    origin, step = round(1e6 * frame.origin_s), units(window.slide)
    return (now_us - origin) // step * step + origin


def moves_next(framed: Framed, frame: Frame, times: Times, now_us: int) -> set[int]:
    """The next ticks at which windows move by time alone: one of a slide, one for every row that gets too old."""
    ways, coming, ticks = framed.ways, framed.own.maybe.copy(), set[int]()
    if not len(ways):
        return ticks
    for window in frame.sliding:
        stands = sliding.standing(window, frame, ways, framed.ticks)
        coming &= ~sliding.is_behind(window, ways, stands)
    if frame.session_s is not None:
        coming &= sessions.in_session(
            frame.session_s, ways, framed.own.maybe, now=now_us, tick_us=times.tick_us
        )
    lasts_us = [units(window.range) for window in frame.sliding if _ages(window)]
    if frame.session_s is not None:
        lasts_us.append(round(1e6 * frame.session_s))
    for last_us in lasts_us:
        ticks |= set(times.tick_after(ways.event_us[coming] + last_us).tolist())
    for window in frame.sliding:
        if window.slide is not None and window.slide.by == "time":
            following = slid_us(window, frame, now_us) + units(window.slide)
            ticks.add(times.tick_from(following))
    return ticks


def _ages(window: Sliding) -> bool:
    """Whether rows leave a window one by one as they get too old."""
    return window.slide is None and window.range.by == "time"


# -- VALID UNTIL (SPEC G8) ---------------------------------------------------------------------------------------------


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
