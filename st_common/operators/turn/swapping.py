"""Queries that start, stop or see another version of a layer at a row of the log, as operators see them (SPEC X4)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.keys import MASK, SHIFT, without
from st_common.operators.state.fixes import ALIVE
from st_common.operators.state.registered import Queries
from st_common.operators.state.state import State
from st_common.operators.turn.changes import CAUSE, change_rows
from st_common.operators.turn.nearness import Held, Nearness, nearness
from st_common.operators.turn.part import Part
from st_common.operators.turn.places import places_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.shown import shown_fields
from st_common.operators.turn.tagged import versions_of
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid import valid_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Queries that stop (`-` with a cause) and queries that are judged anew from all last fixes.

    Attributes:
        queries: all of the stream, as they are afterwards.
        layers: the version of each layer afterwards.
        before: int64, the queries whose answer is taken from the state.
        after: int64, the queries that are judged anew, by their numbers in `queries`.
        position: int64[queries], the row of the log that says so.
        minus: the cause of what leaves.
        plus: the cause of what comes.
        keeps: what is in both answers under one name stays without a change (a layer that was loaded anew).
        takes_over: the one query of `after`, a fence, has the visits of the one of `before` (docs/adr/0032).
        layer: the layer of which they see another version, while nothing else about them changes; None: something may.
    """

    queries: Queries
    layers: dict[str, int]
    before: np.ndarray
    after: np.ndarray
    position: np.ndarray
    minus: str
    plus: str
    keeps: bool
    takes_over: bool = False
    layer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """When and why changes are told.

    Attributes:
        tick: an event time in microseconds.
        position: the row of the log: one for all, or int64[queries].
        minus: a cause that overrides what an answer says by itself of what leaves.
        plus: the same of what comes.
    """

    tick: int
    position: int | np.ndarray
    minus: str | None = None
    plus: str | None = None

    def rows(self, query: np.ndarray) -> np.ndarray:
        """The row of the log of changes of queries (int64[n], their numbers); int64[n]."""
        if isinstance(self.position, int):
            return np.full(len(query), self.position)
        at: np.ndarray = self.position[query]
        return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapping:
    """What every operator needs to swap queries.

    Attributes:
        state: the state before the swap.
        turn: a run without events, with the queries as they are afterwards.
        change: which queries.
        present: the last fixes.
        at: when and why changes are told.
        among: bool[objects], who may have another answer where a layer changed; None: anybody.
    """

    state: State
    turn: Turn
    change: Swap
    present: Present
    at: At
    among: np.ndarray | None = None

    def own_alive(self) -> np.ndarray:
        """The numbers of this shard's objects that are judged: neither gone nor silent; int64, ascending."""
        alive = np.flatnonzero(self.state.fixes.status == ALIVE)
        own: np.ndarray = alive[self.turn.own(alive) & self.judges(alive)]
        return own

    def judges(self, objects: np.ndarray) -> np.ndarray:
        """Whether each of some objects (int64[n]) is judged anew; bool[n]. The others have what they had."""
        if self.among is None:
            return np.ones(len(objects), bool)
        return np.asarray(self.among[objects])

    def also(self, objects: np.ndarray) -> "Swapping":
        """The same with more objects (int64) that are judged: what was decided of them is not what their fix says."""
        if self.among is None or not len(objects):
            return self
        among = self.among.copy()
        among[objects] = True
        return replace(self, among=among)


SwapPhase = Callable[[Swapping], Part]
"""A part of every swap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of an answer that are swapped; all int64, ascending.

    Attributes:
        minus: those that leave, of the queries before.
        plus: those that come, of the queries after.
        kept: the answer without those that leave; `plus` is not in it.
    """

    minus: np.ndarray
    plus: np.ndarray
    kept: np.ndarray


def swapped_keys(
    swapping: Swapping,
    answer: np.ndarray,
    target: np.ndarray,
    judged: np.ndarray,
    after: np.ndarray,
) -> Keys:
    """What a swap takes from an answer and what it adds.

    Args:
        swapping: which queries are swapped, and whether what stays is told.
        answer: the sorted keys of the answer before.
        target: int64, the target of each of these keys.
        judged: bool, whether the object of each is judged anew by its query; else it stays.
        after: the sorted keys that hold now, of the queries that start or stay.

    Returns:
        The keys that go and come, without those in both where the swap keeps them, and what is kept. What a window
        holds stays until it is old, whatever becomes of a layer.
    """
    turn, change = swapping.turn, swapping.change
    is_swapped = np.zeros(len(change.queries), bool)
    is_swapped[change.before] = True
    if change.keeps:
        # Windows tell of the past, which no other version of a layer changes; frames ask who counts now.
        is_swapped &= ~turn.known.windowed | turn.known.framed
    before = answer[is_swapped[turn.numbering.targets.query[target]] & judged]
    if not change.keeps:
        return Keys(minus=before, plus=after, kept=without(answer, before))
    minus = without(before, after)
    return Keys(minus=minus, plus=without(after, before), kept=without(answer, minus))


def tell_swapped(
    swapping: Swapping,
    minus: np.ndarray,
    plus: np.ndarray,
    *,
    answer: np.ndarray | None = None,
) -> pa.Table:
    """The rows of changes of members that leave and come; those of aggregates and frames are told by these themselves.

    Args:
        swapping: when and why.
        minus: int64, keys `target << 32 | object` of what leaves.
        plus: int64, keys of what comes; with the time until which it stays, for queries that ask for that.
        answer: int64, the keys of all members afterwards; None: no row shows which of the nearest it is.

    Returns:
        A table of `SHARD_SCHEMA`.
    """
    turn, at, present = swapping.turn, swapping.at, swapping.present
    of_target = turn.numbering.targets.query
    told = turn.known.tells_members
    minus, plus = (keys[told[of_target[keys >> SHIFT]]] for keys in (minus, plus))
    counts = [len(minus), len(plus)]
    keys = np.concatenate([minus, plus])
    target, who = keys >> SHIFT, keys & MASK
    query = of_target[target]
    comes = np.arange(len(keys)) >= len(minus)
    value = np.full(len(keys), np.nan)
    value[comes] = valid_from(turn, present, query[comes], who[comes], at.tick)
    return change_rows(
        turn.names,
        position=at.rows(query),
        event_ts=np.full(len(keys), at.tick),
        fix_ts=present.ts[who],
        **places_of(present, who),
        rank=np.ones(len(keys)),
        objects=who,
        target=target,
        sign=np.where(comes, 1, -1),
        cause=np.repeat([CAUSE[at.minus or ""], CAUSE[at.plus or ""]], counts),
        value=value,
        fields=_fields(swapping, query, target, who, comes, answer),
    )


def _fields(
    swapping: Swapping,
    query: np.ndarray,
    target: np.ndarray,
    who: np.ndarray,
    comes: np.ndarray,
    answer: np.ndarray | None,
) -> pa.Array | None:
    """What rows of members show, of pairs of the other object too; who leaves has the tags of before."""
    turn, present = swapping.turn, swapping.present
    shows_other = turn.known.showing_other[query].any()
    return shown_fields(
        turn,
        query=query,
        reading=who,
        readings=present.readings(np.arange(len(present))),
        other=present.lookups.others(target) if shows_other else None,
        target=target,
        version=_versions(swapping, query, comes),
        near=_near(swapping, query, who, comes, answer),
    )


def _near(
    swapping: Swapping,
    query: np.ndarray,
    who: np.ndarray,
    comes: np.ndarray,
    answer: np.ndarray | None,
) -> Nearness | None:
    """Which of the nearest each row is that comes; None where none does that shows it."""
    turn, present = swapping.turn, swapping.present
    shows = turn.known.showing_near
    here = np.flatnonzero(shows[query] & comes)
    if answer is None or not len(here):
        return None
    of = turn.numbering.targets.query[answer >> SHIFT]
    # Of queries that nobody swaps it is not known here where they measure from.
    asked = np.isin(of, query[here])
    members, of = answer[asked] & MASK, of[asked]
    # All at one time: a query is a cell.
    nothing = np.zeros(len(members), np.int64)
    held = Held(cell=of, query=of, at=nothing, row=members, object=members)
    ranked = nearness(turn, present.lookups, present, held)
    return ranked.of(query[here], who[here]).at(here, len(query))


def _versions(
    swapping: Swapping, query: np.ndarray, comes: np.ndarray
) -> np.ndarray | None:
    """The versions of layers that rows show tags of; None where none does."""
    if not swapping.turn.known.showing_tags[query].any():
        return None
    before = versions_of(swapping.state.queries, query)
    return np.where(comes, versions_of(swapping.turn.queries, query), before)
