"""How queries for neighbours find who is eligible, by how many objects are and how many queries ask alike (X13).

shared      many queries share a rule: its objects are found once, and each query searches among them
listed      few objects can satisfy a rule: each query goes over their list
searched    else: a query looks at its nearest objects, tests the rule for these, and looks at more while too few
            satisfy it
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from st_common.geometry.grid import blocks
from st_common.operators.skeleton.listing import few_of
from st_common.operators.skeleton.selection import Bools, Ints, Lists, shortest
from st_common.operators.skeleton.world import World

MANY = 64
"""Queries that share a rule: what is built for it alone is worth it."""
FEW_RULES = 8
"""So many rules are taken one by one, whoever asks."""
_SHORT = 32  # objects of a list: many queries go over it as well
_MOST_PAIRS = 1 << 19  # of a query and an object of its list, looked at together
_UNKNOWN = 2  # times few objects are looked at for a rule of which nothing is known, before a list is made for it
_AHEAD = 2  # times as many objects are looked at first as would be enough if those that count were spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The rows of queries by how they find who is eligible: each is in one of three.

    Attributes:
        world: the last fixes of all objects.
        eligible: int64[m], the rule of each row.
        lists: by rule those who may satisfy it.
        shared: int64, rows that share a rule with many.
        listed: int64, rows whose rule few objects can satisfy.
        searched: int64, all other rows.
    """

    world: World
    eligible: Ints
    lists: Lists
    shared: Ints
    listed: Ints
    searched: Ints

    def by_rule(self) -> Iterator[tuple[Ints, Ints]]:
        """For each rule of `shared` rows these rows, and all living objects that satisfy it; int64 each."""
        alive = np.flatnonzero(self.world.alive)
        for rule in np.unique(self.eligible[self.shared]).tolist():
            keep = (
                self.world.selection.holds(np.full(len(alive), rule), alive)
                if rule
                else slice(None)
            )
            yield self.shared[self.eligible[self.shared] == rule], alive[keep]

    def wanted(self, rows: Ints, k: Ints) -> tuple[Ints, Ints]:
        """How many of the nearest objects some rows look at first, and after how many a list is better.

        If half of all objects satisfy a rule, some 2k of the nearest hold k who do: twice as many are looked at first.
        Of a rule without a list whose size says nothing few objects may satisfy it: soon a list of these is made.

        Args:
            rows: int64[r].
            k: int64[r], how many neighbours each wants.

        Returns:
            Two arrays of int64[r].
        """
        total, size = self.world.alive.sum(), self.lists.size[self.eligible[rows]]
        first = np.ceil(_AHEAD * (k + 1) * total / np.maximum(size, 1)).astype(np.int64)
        has_list = self.lists.of_rule[self.eligible[rows]] >= 0
        unknown = np.where(size < total, total, _UNKNOWN * few_of(int(total)))
        return first, np.where(has_list, size, unknown)

    def lists_of(self, rows: Ints) -> Lists:
        """Lists in which each of these rows (int64) finds who satisfies its rule; those that lack are made."""
        rules = np.unique(self.eligible[rows])
        lacking = rules[self.lists.of_rule[rules] < 0]
        if not len(lacking):
            return self.lists
        alive = np.flatnonzero(self.world.alive)
        return shortest([self.lists, self.world.selection.exact(lacking, alive)])


def ways_of(world: World, eligible: Ints) -> Ways:
    """How each row finds who satisfies its rule.

    Args:
        world: the last fixes of all objects.
        eligible: int64[m], the rule of each row.
    """
    alive = np.flatnonzero(world.alive)
    lists = world.selection.lists(alive)
    # How who satisfies a rule is found is decided once for all of its rows.
    rules, of, asking = np.unique(eligible, return_inverse=True, return_counts=True)
    has_list = lists.of_rule[rules] >= 0
    short = has_list & (
        lists.size[rules] <= np.where(asking < MANY, few_of(len(alive)), _SHORT)
    )
    shared = ~short & ((asking >= MANY) | (rules == 0))
    if np.count_nonzero(~short & ~shared) <= FEW_RULES:
        shared = ~short
    return Ways(
        world=world,
        eligible=eligible,
        lists=lists,
        shared=np.flatnonzero(shared[of]),
        listed=np.flatnonzero(short[of]),
        searched=np.flatnonzero(~(shared | short)[of]),
    )


def over_lists(
    lists: Lists, eligible: Ints, rows: Ints
) -> Iterator[tuple[Ints, tuple[Ints, Ints]]]:
    """Some rows with pairs of their place among these rows and an object that may satisfy their rule, piece by piece.

    Args:
        lists: each of the rows has one.
        eligible: int64[m], the rule of each row.
        rows: int64, the rows that are asked about.

    Yields:
        int64, a part of the rows, and pairs (place in the part, object), so few that they fit into memory.
    """
    for part in blocks(lists.size[eligible[rows]], _MOST_PAIRS):
        yield rows[part], lists.pairs(eligible[rows[part]])


def is_short(lists: Lists, eligible: Ints, objects: int) -> Bools:
    """Whether the rule of each row has a list that is short (`few_of`); bool[m].

    Args:
        lists: by rule.
        eligible: int64[m], the rule of each row.
        objects: how many objects there are.
    """
    return (lists.of_rule[eligible] >= 0) & (lists.size[eligible] <= few_of(objects))
