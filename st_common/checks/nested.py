"""Queries about the rows of another one: their rows, which of them are chosen, which count, and the answer above them.

With WINDOW or FOR above the rows it matters at which moments rows were chosen: `Lasting` and `Settling` are shown those
of one moment after the other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from st_common.checks.answers import (
    Counted,
    counted,
    features_in,
    judged_rows,
    known_values,
    members_at,
    value_text,
    values_of,
)
from st_common.checks.history import NEVER, History, Moment, Registered, Source, Times
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
from st_common.reference.metric import Ints
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
    book = book_of(outer, history.times)
    if now is not None and book is not None:
        now = _counting_rows(inner, outer, book, now, history)
        outer = replace(outer, where=None)
    if now is None:
        return set(), None
    above = answer_above(outer, list(now.values()), history.source)
    if above.values is None:
        names = list(now)
        told: Answer = {names[place][:2] for place in above.chosen}
    else:
        told = _texts(known_values(query, history, moment, above.values))
    return told, told


def inner_of(query: Registered) -> Registered:
    """The query whose rows another one is about; of one about objects itself."""
    if query.plan.outer is None:
        return query
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


def _counting_rows(
    inner: Registered, outer: Outer, book: "Book", now: NamedRows, history: History
) -> NamedRows | None:
    """The rows that count for WINDOW or FOR; None where regions became others meanwhile, or it takes too long."""
    moments = _moments(inner, book, history)
    if len(inner.eras) > 1 or inner.plan.frame is not None or moments is None:
        return None
    for moment in moments:
        rows = _named_rows(inner, history, moment)
        if rows is None:
            return None
        chosen, at_us = _chosen_of(inner, outer, rows, history.source), moment.tick_us
        book.take(chosen, at_us, book.turned(at_us))
    ticks, now_us = history.ticks_since(inner.position), history.now().tick_us
    chosen = _chosen_of(inner, outer, now, history.source)
    at_us = int(ticks[-1]) if len(ticks) else now_us
    book.take(chosen, at_us, book.turned(at_us))
    return dict(book.counting(chosen, book.turned(now_us)).values())


class Lasting:
    """WINDOW above rows: those that were chosen count on for a while after they left."""

    def __init__(self, lasting_s: float, times: Times) -> None:
        self._lasting_us, self._times = round(lasting_s * 1e6), times
        self._rows: dict[Name, tuple[Any, int | None]] = {}  # and when each left

    def _gone_at(self, left_us: int) -> int:
        """The first tick at which a row that left is too old."""
        return self._times.tick_after(left_us + self._lasting_us)

    def due(self) -> set[int]:
        """The ticks at which rows get too old."""
        return {self._gone_at(us) for _, us in self._rows.values() if us is not None}

    def turned(self, tick_us: int) -> set[Name]:
        """The rows that are too old at a tick."""
        return {
            name
            for name, (_, us) in self._rows.items()
            if us is not None and self._gone_at(us) <= tick_us
        }

    def counting(
        self, chosen: Mapping[Name, Row], turned: Collection[Name]
    ) -> dict[Name, Row]:
        """The rows that are chosen, and those that were and are not too old, as they were told last."""
        lasting = {n: row for n, (row, _) in self._rows.items() if n not in turned}
        return {**lasting, **chosen}

    def take(
        self, chosen: Mapping[Name, Row], at_us: int, turned: Collection[Name]
    ) -> list[Name]:
        """Takes on the rows that are chosen at a time, and drops those that are too old; gives back who left."""
        left = []
        for name, (row, left_us) in [*self._rows.items()]:
            if name in chosen:
                continue
            if name in turned:
                del self._rows[name]
            elif left_us is None:
                self._rows[name] = row, at_us
                left.append(name)
        self._rows |= {name: (row, None) for name, row in chosen.items()}
        return left

    def first_needed(self, ticks: Ints, now_us: int) -> int:
        """Which tick is the first whose rows may count still, -1 for the registration; they leave at the next one."""
        counts = [self._gone_at(tick) > now_us for tick in ticks.tolist()]
        return counts.index(True) - 1 if True in counts else max(len(counts) - 1, 0)


class Settling:
    """FOR above rows: they count once they were chosen for a while without a break."""

    def __init__(self, settling_s: float, times: Times) -> None:
        self._settling_us, self._times = round(settling_s * 1e6), times
        self._since_us: dict[Name, int] = {}
        self._counting: set[Name] = set()

    def _ripe_at(self, since_us: int) -> int:
        """The first tick at which a row counts that is chosen since a time, if it stays."""
        return self._times.tick_from(since_us + self._settling_us)

    def due(self) -> set[int]:
        """The ticks at which rows begin to count."""
        waiting = self._since_us.keys() - self._counting
        return {self._ripe_at(self._since_us[name]) for name in waiting}

    def turned(self, tick_us: int) -> set[Name]:
        """The rows that begin to count by a tick."""
        waiting = self._since_us.keys() - self._counting
        return {n for n in waiting if self._ripe_at(self._since_us[n]) <= tick_us}

    def counting(
        self, chosen: Mapping[Name, Row], turned: Collection[Name]
    ) -> dict[Name, Row]:
        """The rows that are chosen and have been for long enough."""
        ripe = self._counting.union(turned)
        return {name: row for name, row in chosen.items() if name in ripe}

    def take(
        self, chosen: Mapping[Name, Row], at_us: int, turned: Collection[Name]
    ) -> list[Name]:
        """Takes on the rows that are chosen at a time; others begin anew. Nobody is left of whom it has to be told."""
        self._counting = set(self.counting(chosen, turned))
        self._since_us = {name: self._since_us.get(name, at_us) for name in chosen}
        return []

    def first_needed(self, ticks: Ints, now_us: int) -> int | None:
        """Which tick is the last from which on rows that stay count now; None: the registration may be."""
        passed = [n for n, t in enumerate(ticks.tolist()) if self._ripe_at(t) <= now_us]
        return passed[-1] if passed else None


Book = Lasting | Settling


def book_of(outer: Outer, times: Times) -> Book | None:
    """What WINDOW or FOR above rows remembers of them; None without either."""
    if outer.window is not None:
        return Lasting(outer.window.seconds or 0.0, times)
    return None if outer.lasting_s is None else Settling(outer.lasting_s, times)


def _chosen_of(
    inner: Registered, outer: Outer, rows: NamedRows, source: Source
) -> dict[Name, tuple[Name, dict[str, Any]]]:
    """The rows that satisfy the condition, with their names; by these without the values of groups."""
    above = answer_above(Outer(where=outer.where), list(rows.values()), source)
    known, named = slice(0, 1 if inner.plan.aggregate else None), list(rows.items())
    return {named[place][0][known]: named[place] for place in above.chosen}


def _moments(inner: Registered, book: Book, history: History) -> list[Moment] | None:
    """When rows were chosen that matter for which count now, in order, without now; None for too many moments.

    Before the first tick rows are those of when the query was registered.
    """
    ticks = history.ticks_since(inner.position)
    first = book.first_needed(ticks, history.now().tick_us)
    if first is None or len(ticks) - first > _MOST:
        return None
    at_first = [history.before(inner.position + 1, NEVER)] if first < 0 else []
    needed = ticks[max(first, 0) : -1].tolist()
    return [*at_first, *(history.before(0, tick + 1) for tick in needed)]


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
        rank, far = nearness(plan.neighbours, history.fixes.take(alive), fixes)
        said = {RANK: objects(rank), DISTANCE: objects(far)}
        return list(fixes.of.of_features(text, fixes.rows, said))
    if plan.join is not None and names_pair(text):
        features = features_in(query.eras[-1], history)()
        columns = shown_beside(text, fixes, features, found.partner)
        return list(fixes.of.of_features(text, fixes.rows, columns))
    if plan.pairs is None or not asks_of_pairs(text):
        return list(fixes.of.values(text, fixes.rows))
    alive = _alive_at(query, history, moment)
    row_of = dict(zip(history.fixes.ids[alive], alive.tolist(), strict=True))
    others = [row_of.get(name, -1) for name in found.partner]
    return list(fixes.of.of_pairs(text, fixes.rows, np.array(others, np.int64)))


def _alive_at(query: Registered, history: History, moment: Moment) -> Ints:
    """The last fixes of the objects that live, as a query at ticks knows them."""
    return history.events.alive(judged_rows(query, history, moment))


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
