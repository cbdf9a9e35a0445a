"""Queries about the rows of another one: their rows, which of them are chosen, which count, and the answer above them.

With WINDOW or FOR above the rows it matters at which moments rows were chosen: `Lasting` and `Settling` are shown those
of one moment after the other.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from st_common.checks.answers import (
    Counted,
    counted,
    features_at,
    judged_rows,
    known_values,
    members_at,
    value_text,
    values_of,
)
from st_common.checks.history import LATER, NEVER, History, Moment, Registered, Source
from st_common.query.near_columns import DISTANCE, RANK, names_near
from st_common.query.neighbours import Nearest
from st_common.query.outer import sources_of
from st_common.query.pair_columns import BORDER, NEAREST, names_pair, pair_names
from st_common.query.pair_columns import DISTANCE as FAR
from st_common.query.plan import Outer, Plan, asks_ways
from st_common.reference import outer as reference
from st_common.reference.aggregate import Shown
from st_common.reference.columns import objects
from st_common.reference.layer_join import shown_beside
from st_common.reference.metric import Ints, Objects
from st_common.reference.nearest import nearness
from st_common.reference.pair_join import asks_of_pairs

Name = tuple[Any, ...]
NamedRows = dict[Name, dict[str, Any]]
"""Rows by what names them among the others."""
Answer = set[tuple[Any, ...]]
"""Pairs of an object and its partner, or groups and the texts of their values."""
Row = TypeVar("Row")
_ROW = "row"
"""Where a row stands among the others; no column is called so where it is asked for."""
_MOST = 300
"""How many ticks are looked at: each costs as much as the answer of now."""


def expected_answer(
    query: Registered, history: History, moment: Moment
) -> tuple[Answer, Answer | None]:
    """What must be in the answer, and what may be in it (None: anything): the same but for doubts about distances."""
    if query.plan.outer is not None:
        return _answer_of_rows(query, query.plan.outer, history, moment)
    found = counted(query, history, moment)
    if query.plan.aggregate is None:
        partners = (partner or "" for partner in found.partner)
        pairs = list(zip(history.fixes.ids[found.rows], partners, strict=True))
        sure = zip(pairs, found.sure.tolist(), strict=True)
        return {pair for pair, is_sure in sure if is_sure}, set(pairs)
    values = values_of(query, found, history)
    told = _texts(known_values(query, history, moment, values))
    if found.sure.all() and not _is_speed_on_globe(query.plan, history):
        return told, told
    return set(), None  # doubts about members, or metres, are doubts about all values


def answer_before(
    query: Registered, history: History, position: int, event_us: int
) -> Answer | None:
    """What may have been in the answer before a row of the log, or before a time (None: anything)."""
    if query.position >= position:
        return set()
    then = history.before(position, event_us)
    return expected_answer(query.until(position), history, then)[1]


def _texts(values: Mapping[str, Shown]) -> Answer:
    """Groups and the texts of their values."""
    return {(group, value_text(value)) for group, value in values.items()}


def _answer_of_rows(
    query: Registered, outer: Outer, history: History, moment: Moment
) -> tuple[Answer, Answer | None]:
    """The same of a query about the rows of another one, judged at ticks; doubts about one are about all."""
    inner = inner_of(query)
    now = _named_rows(inner, history, moment)
    if now is None:
        return set(), None
    if outer.window is not None or outer.lasting_s is not None:
        counting = _lately if outer.window is not None else _settled
        now = counting(inner, outer, now, history)
        if now is None:
            return set(), None
        outer = replace(outer, where=None)
    above = answer_above(outer, list(now.values()), history.source)
    if above.values is None:
        names = list(now)
        told: Answer = {names[place][:2] for place in above.chosen}
    else:
        told = _texts(known_values(query, history, moment, above.values))
    return told, told


def inner_of(query: Registered) -> Registered:
    """The query whose rows another one is about."""
    return query.with_plans(lambda plan: replace(plan, outer=None, emit="changes"))


def _named_rows(
    inner: Registered, history: History, moment: Moment
) -> NamedRows | None:
    """The rows of a query by what names them; None where it is not beyond doubt which there are.

    Those of an answer are named by an object and its partner, groups also by the text of their value.
    """
    found = rows_below(inner, history, moment)
    if not found.sure.all() or _is_measured(inner.plan, history):
        return None
    if inner.plan.aggregate is None:
        rows = rows_of_members(inner, found, history, moment)
        partners = (partner or "" for partner in found.partner)
        ids = history.fixes.ids[found.rows]
        names: list[Name] = list(zip(ids, partners, strict=True))
        if inner.plan.frame is not None:
            # Rows of windows are fixes: several of one object.
            names = [(*name, place) for place, name in enumerate(names)]
    else:
        all_values = values_of(inner, found, history)
        values = known_values(inner, history, moment, all_values)
        rows = rows_of_groups(inner.plan, values)
        names = [(group, value_text(value)) for group, value in values.items()]
    return dict(zip(names, rows, strict=True))


def _lately(
    inner: Registered, outer: Outer, now: NamedRows, history: History
) -> NamedRows | None:
    """The rows that were chosen and count on; None where regions became others meanwhile, or it takes too long."""
    ticks = _ticks_since(inner.position, history)
    moments = _moments_of(inner.position, outer, ticks, history)
    if len(inner.eras) > 1 or inner.plan.frame is not None or moments is None:
        return None
    lasting = Lasting[tuple[Name, dict[str, Any]]](outer, history.times.tick_us)
    for then, at_us in _told_at(inner, moments, now, ticks, history):
        if then is None:
            return None
        chosen = _chosen_of(inner, outer, then, history.source)
        lasting.take(chosen, at_us, lasting.aged(at_us))
    return dict(lasting.counting(lasting.aged(history.now().tick_us)).values())


def _settled(
    inner: Registered, outer: Outer, now: NamedRows, history: History
) -> NamedRows | None:
    """The rows that were chosen long enough; None where nobody knows, as for `_lately`."""
    ticks = _ticks_since(inner.position, history)
    settling = Settling(outer, history.times.tick_us)
    moments = _moments_since(settling, ticks, history)
    if len(inner.eras) > 1 or inner.plan.frame is not None or moments is None:
        return None
    chosen: dict[Name, tuple[Name, dict[str, Any]]] = {}
    for then, at_us in _told_at(inner, moments, now, ticks, history):
        if then is None:
            return None
        chosen = _chosen_of(inner, outer, then, history.source)
        settling.take(chosen, at_us, set())
    ripe = settling.ripe(history.now().tick_us)
    return dict(row for key, row in chosen.items() if key in ripe)


def _told_at(
    inner: Registered,
    moments: Sequence[Moment],
    now: NamedRows,
    ticks: Ints,
    history: History,
) -> Iterator[tuple[NamedRows | None, int]]:
    """The rows at some moments, each with its time, and at last those of now."""
    for moment in moments:
        yield _named_rows(inner, history, moment), moment.tick_us
    yield now, int(ticks[-1]) if len(ticks) else history.now().tick_us


class Lasting(Generic[Row]):
    """WINDOW above rows: those that were chosen count on for a while after they left."""

    def __init__(self, outer: Outer, tick_us: int) -> None:
        seconds = outer.window.seconds if outer.window is not None else None
        self._lasting_us, self._tick_us = round((seconds or 0.0) * 1e6), tick_us
        self._rows: dict[Name, tuple[Row, int | None]] = {}  # and when each left

    def gone_at(self, left_us: int) -> int:
        """The first tick at which a row that left is too old."""
        last_us = left_us + self._lasting_us
        return (last_us // self._tick_us + 1) * self._tick_us

    def due(self) -> set[int]:
        """The ticks at which rows get too old."""
        return {self.gone_at(us) for _, us in self._rows.values() if us is not None}

    def aged(self, tick_us: int) -> set[Name]:
        """The rows that are too old at a tick."""
        return {
            name
            for name, (_, us) in self._rows.items()
            if us is not None and self.gone_at(us) <= tick_us
        }

    def counting(self, aged: Collection[Name]) -> dict[Name, Row]:
        """The rows that were chosen and are not too old, as they were told last."""
        return {name: row for name, (row, _) in self._rows.items() if name not in aged}

    def take(
        self, chosen: Mapping[Name, Row], at_us: int, aged: Collection[Name]
    ) -> list[Name]:
        """Takes on the rows that are chosen at a time, and drops those that are too old; gives back who left."""
        left = []
        for name, (row, left_us) in [*self._rows.items()]:
            if name in chosen:
                continue
            if name in aged:
                del self._rows[name]
            elif left_us is None:
                self._rows[name] = row, at_us
                left.append(name)
        self._rows |= {name: (row, None) for name, row in chosen.items()}
        return left


class Settling:
    """FOR above rows: they count once they were chosen for a while without a break."""

    def __init__(self, outer: Outer, tick_us: int) -> None:
        self._settling_us, self._tick_us = (
            round((outer.lasting_s or 0.0) * 1e6),
            tick_us,
        )
        self._since_us: dict[Name, int] = {}
        self.counting: set[Name] = set()

    def ripe_at(self, since_us: int) -> int:
        """The first tick at which a row counts that is chosen since a time, if it stays."""
        return -(-(since_us + self._settling_us) // self._tick_us) * self._tick_us

    def due(self) -> set[int]:
        """The ticks at which rows begin to count."""
        waiting = self._since_us.keys() - self.counting
        return {self.ripe_at(self._since_us[name]) for name in waiting}

    def ripe(self, tick_us: int) -> set[Name]:
        """The rows that begin to count by a tick."""
        waiting = self._since_us.keys() - self.counting
        return {
            name for name in waiting if self.ripe_at(self._since_us[name]) <= tick_us
        }

    def take(
        self, chosen: Collection[Name], at_us: int, ripe: Collection[Name]
    ) -> None:
        """Takes on the rows that are chosen at a time; others begin anew. Those that are `ripe` count from now on."""
        since_us = self._since_us
        self._since_us = {name: since_us.get(name, at_us) for name in chosen}
        self.counting = {
            name for name in chosen if name in self.counting or name in ripe
        }


def _chosen_of(
    inner: Registered, outer: Outer, rows: NamedRows, source: Source
) -> dict[Name, tuple[Name, dict[str, Any]]]:
    """The rows that satisfy the condition, with their names; by these without the values of groups."""
    above = answer_above(Outer(where=outer.where), list(rows.values()), source)
    known, named = slice(0, 1 if inner.plan.aggregate else None), list(rows.items())
    return {named[place][0][known]: named[place] for place in above.chosen}


def _moments_of(
    since: int, outer: Outer, ticks: Ints, history: History
) -> list[Moment] | None:
    """When rows were chosen that may count still, in order, without now; None for too many moments.

    A row that was chosen at a tick leaves at the next one. Before the first tick rows are those of when the query was
    registered, at the row `since`.
    """
    if not len(ticks):
        return []
    lasting, now = Lasting[Any](outer, history.times.tick_us), history.now().tick_us
    counts = np.array([lasting.gone_at(tick) > now for tick in ticks.tolist()])
    before = ticks[:-1][counts[1:]].tolist()
    if len(before) > _MOST:
        return None
    first = [history.before(since + 1, NEVER)] if counts[0] else []
    return [*first, *(history.before(0, tick + 1) for tick in before)]


def _moments_since(
    settling: Settling, ticks: Ints, history: History
) -> list[Moment] | None:
    """The ticks at which a row must have been chosen to count now, in order, without now.

    None for too many moments, and where what was chosen at the registration may count already.
    """
    now = history.now().tick_us
    passed = [
        n for n, tick in enumerate(ticks.tolist()) if settling.ripe_at(tick) <= now
    ]
    needed = ticks[passed[-1] :].tolist() if passed else []
    if not needed or len(needed) > _MOST:
        return None
    return [history.before(0, tick + 1) for tick in needed[:-1]]


def _ticks_since(since: int, history: History) -> Ints:
    """The ticks that were judged after a row of the log, each once."""
    events = history.events
    judged = (events.due != LATER) & (events.due > since)
    return np.unique(events.tick[judged])


def rows_below(inner: Registered, history: History, moment: Moment) -> Counted:
    """What the rows are or count that another query asks about, judged at ticks; members of a window once each."""
    plan = inner.plan
    if plan.frame is None and plan.window is None:
        return members_at(inner, history, moment, by_ticks=True)
    found = counted(inner, history, moment)
    if plan.window is None or plan.aggregate is not None:
        return found
    ids = history.fixes.ids[found.rows]
    first: dict[tuple[str, str | None], int] = {}
    for place, pair in enumerate(zip(ids, found.partner, strict=True)):
        first.setdefault(pair, place)
    return found.take(np.array(list(first.values()), np.int64))


def _is_measured(plan: Plan, history: History) -> bool:
    """Whether values depend on how exactly metres are measured, also those to features and to the place of KNN."""
    is_flat = history.times.space.is_flat
    if any(names_near(text) for _, text in plan.columns):
        return not is_flat
    named = {name for _, text in plan.columns for name in pair_names(text)}
    # Of equally near points either may be the nearest.
    is_far = bool(named & {*NEAREST, FAR, BORDER})
    is_exact = is_flat and not named & {*NEAREST}
    is_beside = plan.join is not None and is_far and not is_exact
    return is_beside or _is_speed_on_globe(plan, history)


def _is_speed_on_globe(plan: Plan, history: History) -> bool:
    """Whether values depend on how exactly metres are measured."""
    return asks_ways(plan.aggregate) and not history.times.space.is_flat


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAbove:
    """What an outer query answers: the values of groups by their names, or the places of the rows that it chooses."""

    values: dict[str, Shown] | None
    chosen: list[int]


def rows_of_groups(plan: Plan, values: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """The rows of a plan with an aggregate, whose groups have these values."""
    return [_row_of_group(plan, group, shown) for group, shown in values.items()]


def _row_of_group(plan: Plan, group: str, shown: Shown) -> dict[str, Any]:
    named = shown if isinstance(shown, Mapping) else {}
    values = plan.aggregate.values if plan.aggregate is not None else ()
    only = named[values[0].name] if named and values else shown
    only = float(only) if isinstance(only, int) else only
    own = {"object": group, "value": only}
    return {
        name: named[name] if source == "selected" else own[source]
        for name, source in sources_of(plan).items()
    }


def rows_of_members(
    inner: Registered, found: Counted, history: History, moment: Moment
) -> list[dict[str, Any]]:
    """The rows of a plan without an aggregate: of its members, pairs, or fixes in windows."""
    texts = dict(inner.plan.columns)
    ids = history.fixes.ids[found.rows]
    own = {"object": ids.tolist(), "partner": found.partner.tolist()}
    columns = {
        name: selected(texts[name], inner, found, history, moment)
        if source == "selected"
        else own[source]
        for name, source in sources_of(inner.plan).items()
    }
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def selected(
    text: str, query: Registered, found: Counted, history: History, moment: Moment
) -> list[Any]:
    """The values of a selected column.

    Of pairs it may be about both objects, or about the feature; of the nearest, which of them a member is.
    """
    plan, fixes = query.plan, history.fixes.take(found.rows)
    if names_near(text) and isinstance(plan.neighbours, Nearest):
        alive = _alive_at(query, history, moment)
        rank, far = nearness(plan.neighbours.place, history.fixes.take(alive), fixes)
        said = {RANK: objects(rank), DISTANCE: objects(far)}
        return list(fixes.of.of_features(text, fixes.rows, said))
    if plan.join is not None and names_pair(text):
        features = features_at(query, history)()
        columns = shown_beside(text, fixes, features, found.partner)
        return list(fixes.of.of_features(text, fixes.rows, columns))
    if plan.pairs is None or not asks_of_pairs(text):
        return list(fixes.of.values(text, fixes.rows))
    others = _rows_of(found.partner, _alive_at(query, history, moment), history)
    return list(fixes.of.of_pairs(text, fixes.rows, others))


def _alive_at(query: Registered, history: History, moment: Moment) -> Ints:
    """The last fixes of the objects that live, as a query at ticks knows them."""
    return history.events.alive(judged_rows(query, history, moment))


def _rows_of(names: Objects, alive: Ints, history: History) -> Ints:
    """The last fix of each of some objects; -1 of none."""
    row_of = dict(zip(history.fixes.ids[alive], alive.tolist(), strict=True))
    return np.array([row_of.get(name, -1) for name in names], np.int64)


def answer_above(
    outer: Outer, rows: Sequence[Mapping[str, Any]], source: Source
) -> AnswerAbove:
    """What an outer query answers about rows; they all have the same columns."""
    aggregate = outer.aggregate
    if aggregate is not None and aggregate.group is not None:
        # The names of groups are the texts that SQL makes of them.
        aggregate = replace(aggregate, group=_as_text(aggregate.group))
    if aggregate is not None:
        keys = tuple((name, _as_text(text)) for name, text in aggregate.keys)
        aggregate = replace(aggregate, keys=keys)
    asked = replace(outer, aggregate=aggregate)
    known = source.of_rows(asked.expressions, rows)
    placed = {place: {**row, _ROW: place} for place, row in enumerate(rows)}

    def value(text: str, row: reference.Row) -> Any:
        # Different objects are counted by the column that every row has.
        return known[text][row[_ROW]] if text in known else row[text]

    def of_groups(text: str, shown: Sequence[Mapping[str, object]]) -> Sequence[Any]:
        return source.of_rows([text], shown)[text]

    chosen = sorted(reference.chosen(asked, placed, value))
    values = None
    if aggregate is not None:
        of_rows = [placed[place] for place in chosen]
        values = reference.groups(aggregate, of_rows, value, of_groups)
    return AnswerAbove(values=values, chosen=chosen)


def _as_text(text: str) -> str:
    return f"CAST({text} AS VARCHAR)"
