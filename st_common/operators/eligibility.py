"""Which objects can be members of queries at all: those that satisfy their selection (SPEC G5: the nearest *free*).

A simple condition is tested for the pairs that a kind asks about. Regions are sorted keys of what lies in them. What
only the database or a filter can say is a bit for each such rule and object: whoever asks, it is asked of every fix, so
that what fails does so at the same fixes.
"""

from dataclasses import dataclass, replace

import numpy as np

from st_common.operators.bits import asked_together, bit_of
from st_common.operators.conditions import hold
from st_common.operators.course import Course
from st_common.operators.intern import Interner
from st_common.operators.keys import MASK, is_in, merged, packed
from st_common.operators.kind_queries import KindQueries
from st_common.operators.kinds import KINDS
from st_common.operators.listing import list_bits, list_conditions, list_keys
from st_common.operators.present import Present
from st_common.operators.rules import Rules
from st_common.operators.screens import Asked, satisfied
from st_common.operators.seen_columns import SeenColumns, seen_columns
from st_common.operators.selection import (
    EVERYONE,
    Bools,
    Ints,
    Lists,
    Selection,
    shortest,
)
from st_common.operators.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the next tick builds on: `asked`, the rules that have a bit, ascending; their `bits`, uint8[n, bytes].

    `keys` (`rule << 32 | object`, sorted) say what lies in regions that stand still.
    """

    asked: np.ndarray
    bits: np.ndarray
    keys: np.ndarray


def selection_of(
    known: KindQueries,
    fixes: Present | Course,
    world: World,
    objects: Interner,
    *,
    before: Held | None,
    changed: np.ndarray,
) -> tuple[Selection, Held | None]:
    """Which objects satisfy the rules of some queries, and what the next tick can build on.

    With that from the tick `before` only the `changed` objects (bool[n]) are looked at anew.
    """
    rules = known.rules
    if not rules.all:
        return EVERYONE, None
    columns = seen_columns(rules.conditions, fixes, objects, space=world.space)
    asked = _asked(rules, columns)
    if before is not None and not np.array_equal(before.asked, asked):
        before = None
    which = np.flatnonzero(world.alive & (changed if before is not None else True))
    asking = _Asking(
        rules=rules,
        asked=asked,
        condition=_by_database(rules, columns),
        fixes=fixes,
        world=world,
        objects=objects,
    )
    held = Held(
        asked=asked,
        bits=_bits(asking, which, before),
        keys=_still_keys(rules, world, which, before, changed),
    )
    inside = [
        _inside(name, of, objects, world) for name, of in known.moving_rules.items()
    ]
    moving = np.sort(np.concatenate([held.keys[:0], *inside]))
    return Eligible(
        rules=rules, fixes=fixes, columns=columns, held=held, moving=moving
    ), held


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligible:
    """The selection at a tick. `moving` are keys as those of `held`, of regions that go with an object."""

    rules: Rules
    fixes: Present | Course
    columns: SeenColumns
    held: Held
    moving: np.ndarray

    def holds(self, rule: Ints, obj: Ints) -> Bools:
        """For each pair whether the object satisfies the rule."""
        rules, keep = self.rules, np.ones(len(rule), np.bool_)
        for has_region, keys in (
            (rules.stands, self.held.keys),
            (rules.moves, self.moving),
        ):
            mine = np.flatnonzero(has_region[rule])
            keep[mine] &= is_in(packed(rule[mine], obj[mine]), keys)
        if len(self.held.asked):
            mine = np.flatnonzero(keep & is_in(rule, self.held.asked))
            keep[mine] = bit_of(
                self.held.bits, obj[mine], np.searchsorted(self.held.asked, rule[mine])
            )
        condition = rules.condition[rule]
        mine = np.flatnonzero(
            keep & (condition >= 0) & np.append(self.columns.simple, False)[condition]
        )
        seen, places = self.columns.at(self.fixes, obj[mine])
        keep[mine] = hold(rules.conditions, seen, condition[mine], places)
        return keep

    def lists(self, objects: Ints) -> Lists:
        """For each rule those of some objects that may satisfy it, by whatever leaves the fewest."""
        seen, places = self.columns.at(self.fixes, objects)
        held, count = self.held, len(self.rules.all) + 1
        among = np.zeros(len(self.fixes), bool)
        among[objects] = True
        return shortest(
            [
                list_conditions(self.rules, self.columns.simple, seen, places, objects),
                list_keys(
                    held.keys[among[held.keys & MASK]], self.rules.stands, objects
                ),
                list_keys(
                    self.moving[among[self.moving & MASK]], self.rules.moves, objects
                ),
                list_bits(held.asked, held.bits, objects, count),
            ]
        )


def _asked(rules: Rules, columns: SeenColumns) -> np.ndarray:
    """The rules of which every fix is asked: whose condition is no simple one, and that ask something of its box."""
    asked = _by_database(rules, columns) >= 0
    asked[rules.stepped] = True
    return np.flatnonzero(asked)


def _by_database(rules: Rules, columns: SeenColumns) -> np.ndarray:
    """The condition of each rule that only the database can say, -1 without; int64[1 + rules]."""
    return np.where(
        np.append(columns.simple, True)[rules.condition], -1, rules.condition
    )


def _bits(of: "_Asking", which: np.ndarray, before: Held | None) -> np.ndarray:
    """uint8[n, bytes]: a bit for each object and rule of those asked."""
    bits = np.zeros((len(of.world.x), -(-len(of.asked) // 8)), np.uint8)
    if before is not None:
        bits[: len(before.bits)] = before.bits
    bits[which] = asked_together(
        len(of.asked),
        len(which),
        lambda start, end: _fresh(of, of.asked[start:end], which),
    )
    return bits


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """What fixes are asked: the rules `asked`, the condition of each rule that is the database's."""

    rules: Rules
    asked: np.ndarray
    condition: np.ndarray
    fixes: Present | Course
    world: World
    objects: Interner


def _fresh(of: _Asking, part: np.ndarray, which: np.ndarray) -> np.ndarray:
    """bool[rules, w]: what conditions and steps of some rules say of some objects."""
    rules, condition, out = (
        of.rules,
        of.condition[part],
        np.ones((len(part), len(which)), bool),
    )
    used, row = np.unique(condition[condition >= 0], return_inverse=True)
    texts = [rules.conditions.texts[number] for number in used.tolist()]
    out[condition >= 0] = of.fixes.masks(texts, which, among=len(of.asked))[row]
    for place in np.flatnonzero(np.isin(part, rules.stepped)).tolist():
        asked = Asked(
            readings=of.fixes.readings(which),
            objects=of.objects,
            space=of.world.space,
        )
        out[place] &= satisfied(rules.all[part[place] - 1].steps, asked)
    return out


def _still_keys(
    rules: Rules,
    world: World,
    which: np.ndarray,
    before: Held | None,
    changed: np.ndarray,
) -> np.ndarray:
    """What lies in regions that stand still: of some objects now, of the others as it was before."""
    x, y, fresh = world.x[which], world.y[which], [np.empty(0, np.int64)]
    for numbers, index in rules.still:
        point, row = index.probe(x, y)
        fresh.append(packed(numbers[row], which[point]))
    new = np.sort(np.concatenate(fresh))
    if before is None:
        return new
    kept: np.ndarray = before.keys[~changed[before.keys & MASK]]
    return merged(kept, new)


def _inside(
    name: str, queries: KindQueries, objects: Interner, world: World
) -> np.ndarray:
    """Keys of what lies in regions that go with an object, without that object; nothing where it does not live."""
    kind, everyone = KINDS[name], replace(world, selection=EVERYONE)
    table = queries.table(queries.find(objects))
    criteria = kind.update_criteria(everyone, table, np.arange(len(queries.numbers)))
    row, found = kind.in_cache_area(
        everyone, criteria, np.flatnonzero(world.alive), 0.0
    )
    keep = kind.satisfy(everyone, criteria, row, found)
    return packed(queries.numbers[row[keep]], found[keep])
