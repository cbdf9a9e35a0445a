"""Rows that count once they were there for a while: FOR above the rows of a query (docs/adr/0041).

With FOR 10 and ticks of 5:

    tick               0     5     10    15    20    25
    told of a          +                       -           there from 0 on: counts from 10, and goes at 20
    counts                         x     x
    told of b          +     -     +           +           it was gone: its time begins anew at 10
    counts                                     x     x     with what was told of it last
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from st_common.operators.events.agenda import ticks_of
from st_common.operators.events.timeline import LAST
from st_common.operators.outer.among import ByTheClock, Told, told_among
from st_common.operators.outer.lingering import Leaving
from st_common.operators.outer.remembered import OuterRows, behind
from st_common.operators.outer.signed import FIX, Signed
from st_common.operators.outer.specs import OuterSpecs
from st_common.operators.state.component import Keyed, Layout, Numbers
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.object_rows import no_numbers
from st_common.operators.turn.changes import CAUSE
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.turn import Turn
from st_common.runs import is_last, last_set, shifted, starts_of

_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Keyed):
    """Rows that are there and do not count yet, sorted by key; n of them. None of them is among `OuterRows`.

    Attributes:
        target: int64[n], the key, as of `OuterRows`; `group`, `text`, `value` and `fields` likewise.
        since: int64[n], the tick from which on they are there, in microseconds.
        fix_ts: int64[n], the time of the fix that is told of when they count.
        x: float64[n], where that was, NaN in rows of states that were stored before it was kept; `y` likewise.
    """

    LAYOUT: ClassVar[Layout] = replace(
        OuterRows.LAYOUT,
        name="waiting",
        numbers={
            "target": (Numbers.TARGETS,),
            "group": (Numbers.PARTNERS,),
            "text": (Numbers.PARTNERS,),
        },
        later={"x": np.nan, "y": np.nan},
    )

    target: np.ndarray = field(default_factory=no_numbers)
    since: np.ndarray = field(default_factory=no_numbers)
    fix_ts: np.ndarray = field(default_factory=no_numbers)
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    y: np.ndarray = field(default_factory=lambda: np.empty(0))
    group: np.ndarray = field(default_factory=no_numbers)
    text: np.ndarray = field(default_factory=no_numbers)
    value: np.ndarray = field(default_factory=lambda: np.empty(0))
    fields: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    @property
    def rows(self) -> OuterRows:
        """The rows as they will count."""
        names = OuterRows.columns()
        return OuterRows(**{name: getattr(self, name) for name in names})


def counts_at(turn: Turn, specs: OuterSpecs, rows: Waiting) -> np.ndarray:
    """The ticks at which waiting rows count if they stay; int64[n], in microseconds."""
    lasting = specs.lasting_us[turn.numbering.targets.query[rows.target]]
    return ticks_of(rows.since + lasting, turn.settings.tick_us)


def settled(
    turn: Turn, told: Told, rows: OuterRows, before: Waiting, leaving: Leaving
) -> tuple[Told, Waiting]:
    """What is told where rows count only once they were there for a while, and which wait afterwards.

    Args:
        turn: the run.
        told: as if all counted at once.
        rows: those that count before the run.
        before: those that wait before it.
        leaving: where ticks are judged, and the queries that end.
    """
    lasting = turn.known.of(OuterSpecs).lasting_us
    if (lasting < 0).all() and not len(before):
        return told, before
    if leaving.ending is not None:
        ended = leaving.ending.ended
        before = before.take(~ended[turn.numbering.targets.query[before.target]])
    data = behind([before.rows, told.asked.rows])
    steps = _told_last(_steps(turn, told, rows, before, lasting), data)
    told = _with_fixes(told, steps)
    due = _due(turn, steps, lasting, may_pass=leaving.ending is None)
    is_early = steps.comes & (steps.tick < due)
    ripe = _ripe(steps, due, is_early)
    position = leaving.positions(due[ripe])
    counts, waits = ripe[position != LAST], ripe[position == LAST]
    clocked = ByTheClock(
        target=steps.key[counts],
        **steps.fixes(counts),
        position=position[position != LAST],
        tick=due[counts],
    )
    early = steps.source[is_early & (steps.source != _NONE)]
    kept = np.delete(np.arange(len(told.signed.query)), early)
    rows, enter = data.take(steps.data[counts]), CAUSE["enter"]
    now = told_among(turn, told, kept, clocked, weight=1, cause=enter, counts=rows)
    return now, _waiting(steps, waits, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """What becomes of keys, by key and time; n steps.

    Attributes:
        key: int64[n].
        tick: int64[n], when; of what counted before the run `NEVER`, of what waited since when it did.
        comes: bool[n], it is there from then on, or is told as something else; else it leaves.
        stay: int64[n], the place of the step by which it came, if it is there.
        fix_ts: int64[n], as of `Waiting`; `x` and `y` likewise.
        x: see `fix_ts`.
        y: see `fix_ts`.
        source: int64[n], the place of the row with a sign, `NONE` of what was so before.
        data: int64[n], its place among the rows that wait, and behind these those that count.
    """

    key: np.ndarray
    tick: np.ndarray
    comes: np.ndarray
    stay: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    source: np.ndarray
    data: np.ndarray

    def take(self, index: np.ndarray) -> "_Steps":
        columns = {name: getattr(self, name)[index] for name in self.__slots__}
        return _Steps(**columns)

    def fixes(self, index: np.ndarray) -> dict[str, np.ndarray]:
        return {name: getattr(self, name)[index] for name in FIX}


def _steps(
    turn: Turn, told: Told, rows: OuterRows, before: Waiting, lasting: np.ndarray
) -> _Steps:
    """What comes and leaves of queries with FOR, behind what counts or waits already of the same keys."""
    signed, of_target = told.signed, turn.numbering.targets.query
    source = np.flatnonzero(lasting[signed.query] >= 0)
    data = np.full(len(signed.query), _NONE)
    data[told.asked.place] = len(before) + np.arange(len(told.asked.place))
    held = rows.target[lasting[of_target[rows.target]] >= 0]
    held = held[np.isin(held, signed.target[source])]
    none, old = np.full(len(held), _NONE), np.arange(len(before))
    key = np.concatenate([held, before.target, signed.target[source]])
    at = np.concatenate([np.full(len(held) + len(old), BEFORE), signed.at[source]])
    tick = [np.full(len(held), NEVER), before.since, signed.tick[signed.at[source]]]
    places = np.concatenate([none, old, data[source]])
    order = np.lexsort((at, key))
    comes = np.concatenate([np.ones(len(held), bool), places[len(held) :] != _NONE])
    comes, key = comes[order], key[order]
    begins = comes & (~shifted(comes, first=False) | (key != shifted(key, _NONE)))
    no_source = np.full(len(held) + len(old), _NONE)
    return _Steps(
        key=key,
        tick=np.concatenate(tick)[order],
        comes=comes,
        stay=np.maximum(starts_of(begins), 0),
        **_fixes(none, before, signed, source, order),
        source=np.concatenate([no_source, source])[order],
        data=places[order],
    )


def _fixes(
    none: np.ndarray,
    before: Waiting,
    signed: Signed,
    source: np.ndarray,
    order: np.ndarray,
) -> dict[str, np.ndarray]:
    """The fixes of rows that count already (`none` knows them), of those that wait, and of those told, in an order."""
    columns = {
        name: [none, getattr(before, name), getattr(signed, name)[source]]
        for name in FIX
    }
    return {name: np.concatenate(parts)[order] for name, parts in columns.items()}


def _told_last(steps: _Steps, data: OuterRows) -> _Steps:
    """The steps with the fixes by which rows became what they are: one that says the same is no other."""
    rows = data.take(np.maximum(steps.data, 0)) if len(data) else OuterRows()
    is_same = np.zeros(len(steps.key), bool)
    if len(rows):
        fields = rows.fields.fill_null("").to_numpy(zero_copy_only=False)
        columns = [rows.group, rows.text, rows.value.view(np.int64), fields]
        is_same[1:] = np.all([one[1:] == one[:-1] for one in columns], axis=0)
    goes_on = steps.comes & (steps.stay != np.arange(len(steps.key)))
    # Of what counted before nobody remembers what it was told as, and it counts already.
    is_same &= goes_on & (shifted(steps.data, _NONE) != _NONE)
    return replace(steps, **steps.fixes(np.maximum(last_set(~is_same), 0)))


def _with_fixes(told: Told, steps: _Steps) -> Told:
    """What is told, where rows that come have the fixes that the steps know."""
    known = np.flatnonzero(steps.comes & (steps.source != _NONE))
    fixes = {name: getattr(told.signed, name).copy() for name in FIX}
    for name, values in steps.fixes(known).items():
        fixes[name][steps.source[known]] = values
    return replace(told, signed=replace(told.signed, **fixes))


def _due(
    turn: Turn, steps: _Steps, lasting: np.ndarray, *, may_pass: bool
) -> np.ndarray:
    """The ticks from which on what is there counts; where no tick passes only what counted before does."""
    since = steps.tick[steps.stay]
    lasts = lasting[turn.numbering.targets.query[steps.key]]
    known = np.where(since == NEVER, 0, since)
    due = ticks_of(known + lasts, turn.settings.tick_us)
    return np.where(since == NEVER, NEVER, due if may_pass else LAST)


def _ripe(steps: _Steps, due: np.ndarray, is_early: np.ndarray) -> np.ndarray:
    """The steps (int64, places) that say what rows count as if their ticks come, of those before these (bool[n]).

    Whoever leaves up to its tick never counts; what is told at that very tick counts by itself.
    """
    follows = ~is_last(steps.key)
    following = np.append(steps.tick[1:], LAST)[: len(due)]
    return np.flatnonzero(is_early & ~(follows & (following <= due)))


def _waiting(steps: _Steps, which: np.ndarray, data: OuterRows) -> Waiting:
    """What waits on, of the steps that say so (int64, places)."""
    some = steps.take(which)
    rows, since = data.take(some.data), steps.tick[some.stay]
    columns = {name: getattr(rows, name) for name in OuterRows.columns()}
    fixes = {name: getattr(some, name) for name in FIX}
    return Waiting(**columns, since=since, **fixes)
