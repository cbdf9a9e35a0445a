"""Aggregates and distinct above spatial answers and windows (SPEC G9).

A group's value is found anew from the members that its query has now, whenever one of them changed, came or left. So
minimum and maximum are right after the extreme has left, and sums do not drift: the same log gives the same bits.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from st_common.operators.aggregate import several
from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.reducing import reduced_cells
from st_common.operators.aggregate.tag_keys import groups_by_tags, texts_of_tags
from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Change, joined
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.present import Present, Sample
from st_common.operators.turn.turn import Turn
from st_common.query.pair_columns import names_pair
from st_common.query.plan import Aggregate

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
    amounts = amounts_of(turn, query, objects[point], adds, adds.several)
    return reduced(turn, query, adds.group, amounts)


class Adds(Protocol):
    """What fixes add to aggregates, row by row.

    Attributes:
        group: the number of the group's name among the partners.
        text: the number of the argument's text where different ones are counted, else `NO_PARTNER`; of what is
            remembered of queries with several values that of all that it adds (see `several`).
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
    """What pairs of a fix and a target add to the target's query; see `Adds`.

    `several` is float64[n, w]: what is added where there are several values, if `text` does not say it.
    """

    group: np.ndarray
    text: np.ndarray
    value: np.ndarray
    several: np.ndarray


def amounts_of(
    turn: Turn,
    query: np.ndarray,
    objects: np.ndarray,
    adds: Adds,
    more: np.ndarray | None = None,
) -> np.ndarray:
    """What the values of aggregates are made of; float64[n, w], NaN for null.

    It is the argument, but where different ones are counted: there it is the number of its text, or of the object where
    there is no argument. A query with one value has it in the first column.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
        objects: int64[n], whose fix it is.
        adds: what it adds.
        more: float64[n, w], what it adds where there are several values; None: `adds` say it by their text.
    """
    amounts = _single_amounts(turn, query, objects, adds)[:, None]
    if more is None:
        more = several.unpacked(turn, query, adds.text)
    if not more.shape[1]:
        return amounts
    has_several = turn.known.function[query] == "several"
    return np.where(has_several[:, None], more, _widened(amounts, more.shape[1]))


def _single_amounts(
    turn: Turn, query: np.ndarray, objects: np.ndarray, adds: Adds
) -> np.ndarray:
    """What queries with one value are made of; float64[n]."""
    is_different = turn.known.counts_different[query]
    if not is_different.any():
        return adds.value
    different = np.where(adds.text == NO_PARTNER, objects, adds.text).astype(float)
    is_null = np.isnan(adds.value)
    return np.where(is_different & ~is_null, different, adds.value)


def _widened(amounts: np.ndarray, width: int) -> np.ndarray:
    """Amounts (float64[n, v]) with room for so many values, if they have less; NaN where none is."""
    more = np.full((len(amounts), max(width - amounts.shape[1], 0)), np.nan)
    return np.concatenate([amounts, more], axis=1)


def both_amounts(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Amounts of some rows (float64[n, v]) and of others behind them (float64[m, w])."""
    width = max(one.shape[1], other.shape[1])
    return np.concatenate([_widened(one, width), _widened(other, width)])


def contributions(
    turn: Turn,
    of: Sample,
    point: np.ndarray,
    target: np.ndarray,
    *,
    remembered: bool = False,
) -> Contributions:
    """What each pair of a fix and a target adds to the target's query; expressions are evaluated once for all fixes.

    Args:
        turn: the run.
        of: the fixes.
        point: int64[p], places of fixes.
        target: int64[p].
        remembered: whether it is kept longer than the run: then the text says what is added to several values.
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
    if remembered:
        _remember_several(turn, of, point, query, text)
        more = np.empty((len(point), 0))
    else:
        more = several.amounts_of(turn, query, of, point)
    return Contributions(group=group, text=text, value=value, several=more)


def _remember_several(
    turn: Turn, of: Sample, point: np.ndarray, query: np.ndarray, text: np.ndarray
) -> None:
    """Writes the numbers of the texts that say what is added to several values."""
    for spec, mine in several.by_aggregate(turn, query):
        packed = several.packed_texts(several.columns_of(spec.values, of), point[mine])
        text[mine] = turn.numbering.partners_of(packed)


def _group_numbers(
    turn: Turn, spec: Aggregate, of: Sample, point: np.ndarray, target: np.ndarray
) -> np.ndarray:
    numbering, keys = turn.numbering, spec.grouped_by
    if not keys:
        return np.full(len(point), numbering.partner_of(ALL))
    partner: np.ndarray = numbering.targets.partner[target]
    if len(keys) > 1:
        tags = {
            text: texts_of_tags(turn, text, target) for text in keys if names_pair(text)
        }
        return several.names_of_groups(numbering, keys, of, point, partner, tags)
    if keys[0] == PARTNER:
        return _named_partners(numbering, partner)
    if names_pair(keys[0]):
        return groups_by_tags(turn, keys[0], target)
    is_text = spec.function != "avgspd"  # that tells of objects, by their ids
    number_of_text = (
        of.groups(keys[0], numbering)
        if is_text
        else of.partners(keys[0], numbering, null="")
    )
    numbers: np.ndarray = number_of_text[point]
    return numbers


def _named_partners(numbering: Numbering, partner: np.ndarray) -> np.ndarray:
    """The groups of partners (int64[n]): they name them; that of no partner is NULL."""
    is_there = partner != NO_PARTNER
    if is_there.all():
        return partner
    return np.where(is_there, partner, numbering.partner_of("NULL"))


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


def reduced(
    turn: Turn, query: np.ndarray, group: np.ndarray, amounts: np.ndarray
) -> Groups:
    """What groups have by query and group, as groups.

    Args:
        turn: the run.
        query: int64[n], the query of each row.
        group: int64[n], numbers of groups' names.
        amounts: float64[n, w], NaN for null.
    """
    values = reduced_cells(turn, query, query, group, amounts)
    target = turn.numbering.targets_of(values.cell, values.group)
    groups = Groups(target=target, value=values.value, text=values.text)
    return groups.take(np.argsort(target, kind="stable"))


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
        same = (old.target[at] == fresh.target) & several.same_values(
            (old.value[at], old.text[at]), (fresh.value, fresh.text)
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
    value, text = several.nothing_of(turn, query, np.full(len(query), star))
    groups = Groups(target=target, value=value, text=text)
    return groups.take(np.argsort(target))
