"""Aggregates and distinct above spatial answers and windows (SPEC G9).

A group's value is found anew from the members that its query has now, whenever one of them changed, came or left. So
minimum and maximum are right after the extreme has left, and sums do not drift: the same log gives the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from st_common.operators.aggregate.groups import Groups
from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Change, joined
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.present import Present, Sample
from st_common.operators.turn.turn import Turn
from st_common.query.plan import Aggregate
from st_common.runs import firsts

ALL = "*"  # the name of the one group of an aggregate without groups
PARTNER = "partner"


def groups_of_members(
    turn: Turn, fixes: Present, answer: np.ndarray, dirty: np.ndarray
) -> Groups:
    """The groups of some queries over their members' last fixes.

    Args:
        turn: the run.
        fixes: the last fixes.
        answer: int64, keys `target << 32 | object` of members.
        dirty: int64, the numbers of the queries.
    """
    if not len(dirty):
        return Groups()
    is_dirty = np.zeros(len(turn.queries), bool)
    is_dirty[dirty] = True
    keys = answer[is_dirty[turn.numbering.targets.query[answer >> SHIFT]]]
    objects, point = np.unique(keys & MASK, return_inverse=True)
    target = keys >> SHIFT
    query = turn.numbering.targets.query[target]
    adds = contributions(turn, fixes.sample(objects), point, target)
    amounts = amounts_of(turn, query, objects[point], adds)
    return reduced(turn, query, adds.group, amounts)


class Adds(Protocol):
    """What fixes add to aggregates, row by row.

    Attributes:
        group: the number of the group's name among the partners.
        text: the number of the argument's text where different ones are counted, else `NO_PARTNER`.
        value: the aggregate's argument, NaN for null; 1 where only whether there is one matters.
    """

    @property
    def group(self) -> np.ndarray:
        """int64[n]."""

    @property
    def text(self) -> np.ndarray:
        """int64[n]."""

    @property
    def value(self) -> np.ndarray:
        """f64[n]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """What pairs of a fix and a target add to the target's query; see `Adds`."""

    group: np.ndarray
    text: np.ndarray
    value: np.ndarray


def amounts_of(
    turn: Turn, query: np.ndarray, objects: np.ndarray, adds: Adds
) -> np.ndarray:
    """What the values of aggregates are made of; float64[n], NaN for null.

    It is the argument, but where different ones are counted: there it is the number of its text, or of the object where
    there is no argument.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
        objects: int64[n], whose fix it is.
        adds: what it adds.
    """
    is_different = turn.known.counts_different[query]
    if not is_different.any():
        return adds.value
    different = np.where(adds.text == NO_PARTNER, objects, adds.text).astype(float)
    is_null = np.isnan(adds.value)
    return np.where(is_different & ~is_null, different, adds.value)


def contributions(
    turn: Turn, of: Sample, point: np.ndarray, target: np.ndarray
) -> Contributions:
    """What each pair of a fix and a target adds to the target's query; expressions are evaluated once for all fixes.

    Args:
        turn: the run.
        of: the fixes.
        point: int64[p], places of fixes.
        target: int64[p].
    """
    query = turn.numbering.targets.query[target]
    group, text = np.full(len(point), NO_PARTNER), np.full(len(point), NO_PARTNER)
    value = np.ones(len(point))
    used = np.unique(query)
    specs = {
        n: spec
        for n in used.tolist()
        if (spec := turn.queries[n].plan.aggregate) is not None
    }
    for spec in dict.fromkeys(specs.values()):
        mine = np.flatnonzero(
            np.isin(query, [n for n, other in specs.items() if other == spec])
        )
        group[mine] = _group_numbers(turn, spec, of, point[mine], target[mine])
        value[mine] = _values(spec, of, point[mine])
        if spec.function == "count_distinct" and spec.argument is not None:
            numbers = of.partners(spec.argument, turn.numbering, null="")
            text[mine] = numbers[point[mine]]
    # A null was given the number of an empty text, which is no different value.
    text[np.isnan(value)] = NO_PARTNER
    return Contributions(group=group, text=text, value=value)


def _group_numbers(
    turn: Turn, spec: Aggregate, of: Sample, point: np.ndarray, target: np.ndarray
) -> np.ndarray:
    numbering = turn.numbering
    if spec.grouped_by is None:
        return np.full(len(point), numbering.partner_of(ALL))
    if spec.grouped_by == PARTNER:
        partner: np.ndarray = numbering.targets.partner[target]
        return partner
    is_text = spec.function != "avgspd"  # that tells of objects, by their ids
    number_of_text = (
        of.groups(spec.grouped_by, numbering)
        if is_text
        else of.partners(spec.grouped_by, numbering, null="")
    )
    numbers: np.ndarray = number_of_text[point]
    return numbers


def _values(spec: Aggregate, of: Sample, point: np.ndarray) -> np.ndarray:
    if spec.argument is None or spec.function in ("distinct", "avgspd") or not len(of):
        return np.ones(len(point))
    values: np.ndarray = _argument(spec.function, spec.argument, of)[point]
    return values


def _argument(function: str, argument: str, of: Sample) -> np.ndarray:
    """A number per fix, NaN for null: the argument itself, or 1 where only whether there is one matters."""
    if function == "count":
        return np.where(of.known(argument), 1.0, np.nan)
    if function == "count_distinct":
        return np.where(of.texts(argument)[0] < 0, np.nan, 1.0)
    return of.numbers(argument)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """One value per cell (a query, or a query at a tick) and group.

    Attributes:
        cell: int64[n].
        group: int64[n].
        value: float64[n], NaN for distinct.
    """

    cell: np.ndarray
    group: np.ndarray
    value: np.ndarray


def both(one: Reduced, other: Reduced) -> Reduced:
    """The values of two sets of cells, none of which is in both, one behind the other."""
    names = Reduced.__dataclass_fields__
    return Reduced(
        **{
            name: np.concatenate([getattr(one, name), getattr(other, name)])
            for name in names
        }
    )


def reduced(
    turn: Turn, query: np.ndarray, group: np.ndarray, value: np.ndarray
) -> Groups:
    """One value per query and group, as groups.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
        group: int64[n], numbers of groups' names.
        value: float64[n], NaN for null.
    """
    values = reduced_cells(turn.known.function[query], query, group, value)
    target = turn.numbering.targets_of(values.cell, values.group)
    order = np.argsort(target, kind="stable")
    return Groups(target=target[order], value=values.value[order])


def reduced_cells(
    function: np.ndarray, cell: np.ndarray, group: np.ndarray, value: np.ndarray
) -> Reduced:
    """One value per cell and group (SPEC G9).

    Sums are taken in the order of the values, so that they depend on nothing but these (docs/adr/0009).

    Args:
        function: object[n], by which aggregate each row counts; one for all rows of a cell.
        cell: int64[n].
        group: int64[n].
        value: float64[n], NaN for null: it adds nothing.

    Returns:
        Values of groups with any; counts and distinct ones also of groups whose values are all null. None of a cell
        without rows.

    Example:
        SUM of group 5: 2, 3; group 6: null; group 7: 1      5: 5, 7: 1
        COUNT of group 5: null, null                         5: 0
    """
    # By value within a group: sums depend on the order in which they are taken, and rows come in any.
    order = np.lexsort((value, group, cell))
    function, cell, group, value = (
        function[order],
        cell[order],
        group[order],
        value[order],
    )
    used = [name for name in _REDUCE if (function == name).any()]
    rows = [np.flatnonzero(function == name) for name in used]
    parts = [
        _reduced(name, cell[of], group[of], value[of])
        for name, of in zip(used, rows, strict=True)
    ]
    none = np.empty(0, np.int64)
    return Reduced(
        cell=np.concatenate([none, *(part.cell for part in parts)]),
        group=np.concatenate([none, *(part.group for part in parts)]),
        value=np.concatenate([np.empty(0), *(part.value for part in parts)]),
    )


def _reduced(
    function: str, cell: np.ndarray, group: np.ndarray, value: np.ndarray
) -> Reduced:
    """One value per cell and group of rows of one aggregate, sorted by both."""
    starts = firsts(cell, group)
    known = ~np.isnan(value)
    count = np.add.reduceat(known.astype(np.int64), starts)
    values = _REDUCE[function](value, known, starts, count)
    keep = (count > 0) | (function in ("count", "count_distinct", "distinct"))
    return Reduced(
        cell=cell[starts][keep], group=group[starts][keep], value=values[keep]
    )


def _distinct_count(
    value: np.ndarray, known: np.ndarray, starts: np.ndarray, count: np.ndarray
) -> np.ndarray:
    row = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(value)]))
    pairs = np.unique(np.stack([row[known].astype(float), value[known]]), axis=1)
    return np.bincount(pairs[0].astype(np.int64), minlength=len(count)).astype(float)


_REDUCE: dict[
    str, Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
] = {
    "count": lambda value, known, starts, count: count.astype(float),  # noqa: ARG005 - one signature for all
    "count_distinct": _distinct_count,
    "sum": lambda value, known, starts, count: np.add.reduceat(  # noqa: ARG005
        np.where(known, value, 0.0), starts
    ),
    "avg": lambda value, known, starts, count: (
        np.add.reduceat(np.where(known, value, 0.0), starts) / np.maximum(count, 1)
    ),
    "min": lambda value, known, starts, count: np.minimum.reduceat(  # noqa: ARG005
        np.where(known, value, np.inf), starts
    ),
    "max": lambda value, known, starts, count: np.maximum.reduceat(  # noqa: ARG005
        np.where(known, value, -np.inf), starts
    ),
    "distinct": lambda value, known, starts, count: np.full(len(starts), np.nan),  # noqa: ARG005
}


def regrouped(
    turn: Turn, before: Groups, dirty: np.ndarray, fresh: Groups
) -> Change[Groups]:
    """What changes when the groups of some queries become others; counts without groups become 0 and never vanish.

    Args:
        turn: the run.
        before: all groups as they were told last.
        dirty: int64, the numbers of the queries.
        fresh: all groups that these have now.
    """
    fresh = joined([fresh, zeros(turn, dirty, fresh)])
    is_dirty = np.zeros(len(turn.queries), bool)
    is_dirty[dirty] = True
    return regrouped_targets(
        before,
        before.target[is_dirty[turn.numbering.targets.query[before.target]]],
        fresh,
    )


def regrouped_targets(
    before: Groups, targets: np.ndarray, fresh: Groups
) -> Change[Groups]:
    """What changes when the groups of some targets become others.

    Args:
        before: all groups as they were told last.
        targets: int64, those that are decided anew.
        fresh: the groups among these that are now.

    Returns:
        A change that removes groups that went or have another value, and adds those that came or have one.

    Example:
        before 1: 5, 2: 6, 3: null, fresh 2: 7, 3: null, 4: 1        removed 1, 2, added 2: 7, 4: 1
    """
    old = before.among(targets)
    at = np.minimum(np.searchsorted(old.target, fresh.target), max(len(old) - 1, 0))
    same = np.zeros(len(fresh), bool)
    if len(old):
        one, other = old.value[at], fresh.value
        same = (old.target[at] == fresh.target) & (
            (one == other) | (np.isnan(one) & np.isnan(other))
        )
    removed = old.target[~np.isin(old.target, fresh.target[same])]
    return Change(removed=removed, added=fresh.take(~same))


def untold(turn: Turn, groups: Groups) -> Groups:
    """Counts of nothing for queries that were there before the stream had a time, and have no value since."""
    early = turn.known.early[turn.known.grouped[turn.known.early]]
    if not len(early):
        return Groups()
    return zeros(
        turn,
        np.setdiff1d(early, turn.numbering.targets.query[groups.target]),
        Groups(),
    )


def zeros(turn: Turn, dirty: np.ndarray, fresh: Groups) -> Groups:
    """Counts of nothing, for those of some queries that count without groups and have no value.

    Args:
        turn: the run.
        dirty: int64, the numbers of the queries.
        fresh: the groups that have a value.
    """
    query = np.setdiff1d(
        dirty[turn.known.counts_nothing[dirty]],
        turn.numbering.targets.query[fresh.target],
    )
    if not len(query):
        return Groups()
    star = turn.numbering.partner_of(ALL)
    target = turn.numbering.targets_of(query, np.full(len(query), star))
    order = np.argsort(target)
    return Groups(target=target[order], value=np.zeros(len(target)))
