"""Which objects satisfy the rules of queries: tested where a query and an object meet, listed where few do (X13).

A rule is a number; 0 is satisfied by all. Nothing here has a place for each rule and object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from st_common.runs import ranges

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Selection(Protocol):
    """What kinds ask about the rules of their queries, at one moment."""

    def holds(self, rule: Ints, obj: Ints) -> Bools:
        """Whether the object of each pair satisfies its rule; bool[p], for int64[p] rules and objects."""

    def lists(self, objects: Ints) -> "Lists":
        """For each rule a list of those of some objects (int64) that may satisfy it; of which little is known, none."""

    def exact(self, rules: Ints, objects: Ints) -> "Lists":
        """For some rules (int64) the list of exactly those of some objects (int64) that satisfy it."""


class Everyone:
    """The selection where no rule is but 0."""

    def holds(self, rule: Ints, obj: Ints) -> Bools:  # noqa: ARG002 - one signature for all
        """All pairs hold; bool[p]."""
        return np.ones(len(obj), np.bool_)

    def lists(self, objects: Ints) -> "Lists":
        """No list: whoever asks goes over all objects."""
        return no_lists(1, objects)

    def exact(self, rules: Ints, objects: Ints) -> "Lists":  # noqa: ARG002 - one signature for all
        """None: of rule 0 nobody asks for a list."""
        return no_lists(1, objects)


EVERYONE = Everyone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """Lists of objects, and which one holds all that can satisfy a rule.

    A list is made of runs of `members`; an object is in it once.

        members   1 2 3 4 5 6 7 8 9        rule 1 has list 0: 1 and 6
        owner     0     0     1            rule 2 has list 1: 3
        start     0     5     2            rule 0 has none
        count     1     1     1

    Attributes:
        of_rule: int64[rules], the list of each rule, -1 without.
        size: int64[rules], how many objects may satisfy the rule at most.
        owner: int64[runs], ascending, of which list each run is.
        start: int64[runs], where it begins in `members`.
        count: int64[runs], how many it has.
        members: int64, objects.
    """

    of_rule: Ints
    size: Ints
    owner: Ints
    start: Ints
    count: Ints
    members: Ints

    def pairs(self, rule: Ints) -> tuple[Ints, Ints]:
        """Each of some rules with the objects of its list; none for a rule without a list.

        Args:
            rule: int64[n], numbers of rules, repeats allowed.

        Returns:
            Two int64 arrays: the place in `rule`, ascending, and an object of that rule's list.
        """
        of = self.of_rule[rule]
        first = np.searchsorted(self.owner, of, side="left")
        runs = np.where(
            of < 0, 0, np.searchsorted(self.owner, of, side="right") - first
        )
        place, run = np.repeat(np.arange(len(rule)), runs), ranges(first, runs)
        count = self.count[run]
        return np.repeat(place, count), self.members[ranges(self.start[run], count)]


def no_lists(rules: int, objects: Ints) -> Lists:
    """No list for any of so many rules: all of the objects may satisfy each."""
    none = np.empty(0, np.int64)
    size = np.full(rules, len(objects))
    return Lists(
        of_rule=np.full(rules, -1),
        size=size,
        owner=none,
        start=none,
        count=none,
        members=none,
    )


def shortest(parts: Sequence[Lists]) -> Lists:
    """For each rule the shortest of the lists that several parts have for it.

    Args:
        parts: lists of the same rules, at least one part.

    Returns:
        Lists of all rules; `size` is the least that any part says, also where that part has no list.
    """
    counts = np.array([part.owner.max(initial=-1) + 1 for part in parts])
    lists, places = (
        np.cumsum(of) - of
        for of in (counts, np.array([len(part.members) for part in parts]))
    )
    sizes = np.stack([np.where(part.of_rule < 0, np.inf, part.size) for part in parts])
    best, rules = sizes.argmin(axis=0), np.arange(sizes.shape[1])
    listed = np.isfinite(sizes[best, rules])
    of_rule = np.stack(
        [part.of_rule + first for part, first in zip(parts, lists, strict=True)]
    )
    return Lists(
        of_rule=np.where(listed, of_rule[best, rules], -1),
        size=np.min([part.size for part in parts], axis=0),
        owner=np.concatenate(
            [part.owner + first for part, first in zip(parts, lists, strict=True)]
        ),
        start=np.concatenate(
            [part.start + first for part, first in zip(parts, places, strict=True)]
        ),
        count=np.concatenate([part.count for part in parts]),
        members=np.concatenate([part.members for part in parts]),
    )
