"""Which objects can be members of queries at all: those that satisfy their selection (SPEC G5: the nearest *free*).

A rule (`WHERE free = 1` below `KNN`, a region, steps of `USING`) is a number; queries that ask alike share it. How it
is tested depends on what it is:

    simple condition    speed > 50             compared where a query and an object meet
    with a shape        ABS(load - 3) > 1      by pairs where few are asked, with all literals of the shape at once
    region that stands  INSIDE depot           sorted keys `rule << 32 | object` of what lies in it
    region that goes    ('M', 'bus-2', 500)    the same, at each tick anew
    any other           SQL, a filter, EXISTS  a bit for each rule and object, kept from tick to tick

What is asked as bits is asked of every fix, whoever wants it, so that what fails does so at the same fixes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from st_common.geometry.grid import blocks
from st_common.operators.arrays.bits import asked_together, bit_of
from st_common.operators.arrays.keys import MASK, is_in, merged, packed
from st_common.operators.expressions.general import MOST_PAIRS, General, Source
from st_common.operators.expressions.screens import Asked, satisfied
from st_common.operators.expressions.truth import hold
from st_common.operators.matching.extents import looked_up
from st_common.operators.matching.match import pairs_of
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.skeleton.kinds import KINDS
from st_common.operators.skeleton.listing import list_bits, list_conditions, list_keys
from st_common.operators.skeleton.rules import Rules
from st_common.operators.skeleton.selection import (
    EVERYONE,
    Bools,
    Ints,
    Lists,
    Selection,
    shortest,
)
from st_common.operators.skeleton.world import World
from st_common.operators.state.intern import Interner
from st_common.operators.turn.course import Course
from st_common.operators.turn.points import points_at
from st_common.operators.turn.present import Present
from st_common.operators.turn.seen_columns import SeenColumns, seen_columns
from st_common.operators.turn.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the next tick builds on.

    Attributes:
        asked: int64, ascending, the rules that have a bit.
        bits: uint8[objects, bytes], the bits in the order of `asked`, as `asked_together` lays them out.
        keys: int64, ascending, `rule << 32 | object`: what lies in regions that stand still.
    """

    asked: np.ndarray
    bits: np.ndarray
    keys: np.ndarray


def selection_of(
    known: KindQueries,
    fixes: Present | Course,
    world: World,
    turn: Turn,
    *,
    before: Held | None,
    changed: np.ndarray,
) -> tuple[Selection, Held | None]:
    """Which objects satisfy the rules of some queries of a kind (`WHERE` below `KNN`: the nearest *free* taxis).

    Args:
        known: the queries.
        fixes: the last fixes, at one tick or over several.
        world: the same as the kind sees them.
        turn: the run.
        before: what the tick before gave: with it only the `changed` objects are looked at anew; None: all are.
        changed: bool[objects], who has another fix than at the tick before.

    Returns:
        The selection, and what the next tick can build on; `EVERYONE` and None where no query has a rule.
    """
    rules, objects = known.rules, turn.objects
    if not rules.all:
        return EVERYONE, None
    columns = seen_columns(rules.conditions, fixes, objects, space=world.space)
    shaped, others = _by_database(rules, columns)
    asking = _Asking(
        rules=rules,
        asked=_asked(rules, others),
        condition=others,
        fixes=fixes,
        world=world,
        turn=turn,
    )
    held = _held(asking, before, changed)
    inside = [
        _inside(name, of, objects, world) for name, of in known.moving_rules.items()
    ]
    source = _source(fixes, world, objects, among=len(rules.all))
    return Eligible(
        rules=rules,
        fixes=fixes,
        columns=columns,
        held=held,
        moving=np.sort(np.concatenate([held.keys[:0], *inside])),
        shaped=shaped,
        general=General(columns.tested.texts, columns.tested.shapes, source),
    ), held


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligible:
    """The selection at a tick; made by `selection_of`.

    Attributes:
        moving: int64, ascending, keys as those of `held`, of regions that go with an object.
        shaped: int64[1 + rules], the condition of each rule that is tested for pairs by `general`, -1 without.
    """

    rules: Rules
    fixes: Present | Course
    columns: SeenColumns
    held: Held
    moving: np.ndarray
    shaped: np.ndarray
    general: General

    def holds(self, rule: Ints, obj: Ints) -> Bools:
        """Whether the object of each pair satisfies the rule of the pair; bool[p].

        Args:
            rule: int64[p], numbers of rules, 0 for that of all objects.
            obj: int64[p], objects; places of versions over several ticks.
        """
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
        # The dearest tests come last, and only for pairs that nothing cheaper has ruled out.
        condition = rules.condition[rule]
        mine = np.flatnonzero(
            keep
            & (condition >= 0)
            & np.append(self.columns.tested.indexed, False)[condition]
        )
        seen, places = self.columns.at(self.fixes, obj[mine])
        keep[mine] = hold(rules.conditions, seen, condition[mine], places)
        shaped = self.shaped[rule]
        mine = np.flatnonzero(keep & (shaped >= 0))
        keep[mine] = self.general.pairs(shaped[mine], obj[mine])
        return keep

    def exact(self, rules: Ints, objects: Ints) -> Lists:
        """For some rules the list of exactly those of some objects that satisfy it.

        Args:
            rules: int64[r], each once.
            objects: int64[n], the objects that may be in a list.

        Returns:
            Lists of these rules, and of no others.
        """
        keys, total = [np.empty(0, np.int64)], len(objects)
        # Some rules at a time, so that their pairs fit into memory.
        for part in blocks(np.full(len(rules), total), MOST_PAIRS):
            rule = np.repeat(rules[part], total)
            obj = np.tile(objects, len(rules[part]))
            keep = self.holds(rule, obj)
            keys.append(packed(rule[keep], obj[keep]))
        has_list = np.zeros(len(self.rules.all) + 1, bool)
        has_list[rules] = True
        return list_keys(np.sort(np.concatenate(keys)), has_list, objects)

    def lists(self, objects: Ints) -> Lists:
        """For each rule a list of those of some objects that may satisfy it, by whatever leaves the fewest.

        A list holds everybody who satisfies the rule, and maybe others: `holds` says the rest. Rules of which too
        little is known, or too many objects, have none.
        """
        seen, places = self.columns.at(self.fixes, objects)
        held, count = self.held, len(self.rules.all) + 1
        among = np.zeros(len(self.fixes), bool)
        among[objects] = True
        return shortest(
            [
                list_conditions(
                    self.rules, self.columns.tested.indexed, seen, places, objects
                ),
                list_keys(
                    held.keys[among[held.keys & MASK]], self.rules.stands, objects
                ),
                list_keys(
                    self.moving[among[self.moving & MASK]], self.rules.moves, objects
                ),
                list_bits(held.asked, held.bits, objects, count),
            ]
        )


def _source(
    fixes: Present | Course, world: World, objects: Interner, *, among: int
) -> Source:
    """The last fixes of objects, for conditions that are asked of pairs; only of those that live."""

    def dense(texts: Sequence[str]) -> np.ndarray:
        which = np.flatnonzero(world.alive)
        out = np.zeros((len(texts), len(world.alive)), bool)
        out[:, which] = fixes.masks(texts, which, among=among)
        return out

    return Source(
        readings=fixes.readings,
        ids=objects.ids,
        space=world.space,
        size=len(world.alive),
        dense=dense,
        spent_us=fixes.values.spent_us(among),
    )


def _asked(rules: Rules, condition: np.ndarray) -> np.ndarray:
    """The rules of which every fix is asked: with a `condition` of that kind, with steps, and with a layer."""
    asked = condition >= 0
    asked[rules.stepped] = True
    asked[_with_layers(rules)] = True
    return np.flatnonzero(asked)


def _with_layers(rules: Rules) -> np.ndarray:
    """The rules that choose objects by the features of a layer."""
    numbers = [unit.numbers for unit in rules.joining.units]
    return np.concatenate([np.empty(0, np.int64), *numbers])


def _by_database(rules: Rules, columns: SeenColumns) -> tuple[np.ndarray, np.ndarray]:
    """The condition of each rule that only the database can say, -1 without; int64[1 + rules].

    First those with a shape, which wait for the few pairs that are asked about, then those that are asked of every fix.
    """
    tested = columns.tested
    is_simple = np.append(tested.simple, True)[rules.condition]
    shape = np.append(tested.shapes.shape, -1)[rules.condition]
    is_shaped = ~is_simple & (shape >= 0)
    return (
        np.where(is_shaped, rules.condition, -1),
        np.where(is_simple | is_shaped, -1, rules.condition),
    )


def _held(of: "_Asking", before: Held | None, changed: np.ndarray) -> Held:
    """What is known of every object, given what was known at the tick before."""
    # Bits stand by the place of a rule among those asked: with other rules they mean something else.
    if before is not None and not np.array_equal(before.asked, of.asked):
        before = None
    alive = of.world.alive
    which = np.flatnonzero(alive & (changed if before is not None else True))
    return Held(
        asked=of.asked,
        bits=_bits(of, which, before),
        keys=_still_keys(of, which, before, changed),
    )


def _bits(of: "_Asking", which: np.ndarray, before: Held | None) -> np.ndarray:
    """uint8[n, bytes]: a bit for each object and rule of those asked."""
    # Objects may have come since: those of before have the first rows.
    bits = np.zeros((len(of.world.x), -(-len(of.asked) // 8)), np.uint8)
    if before is not None:
        bits[: len(before.bits)] = before.bits
    chosen = _chosen(of, which)
    bits[which] = asked_together(
        len(of.asked),
        len(which),
        lambda start, end: _fresh(of, of.asked[start:end], which, chosen),
    )
    return bits


def _chosen(of: "_Asking", which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of one of some objects (its place in `which`) and a rule whose layer chooses it."""
    joining, turn = of.rules.joining, of.turn
    if joining.empty:
        return which[:0], which[:0]
    points = points_at(joining, of.fixes, which, turn.objects, space=of.world.space)
    return pairs_of(joining, points, layer_of=turn.layer_of, numbering=turn.numbering)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """What fixes are asked: the rules `asked`, the condition of each rule that is the database's."""

    rules: Rules
    asked: np.ndarray
    condition: np.ndarray
    fixes: Present | Course
    world: World
    turn: Turn


def _fresh(
    of: _Asking,
    part: np.ndarray,
    which: np.ndarray,
    chosen: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """bool[rules, w]: what conditions, steps and layers of some rules say of some objects."""
    rules, condition, out = (
        of.rules,
        of.condition[part],
        np.ones((len(part), len(which)), bool),
    )
    used, row = np.unique(condition[condition >= 0], return_inverse=True)
    texts = [rules.conditions.texts[number] for number in used.tolist()]
    out[condition >= 0] = of.fixes.masks(texts, which, among=len(of.asked))[row]
    for place in np.flatnonzero(np.isin(part, rules.stepped)).tolist():
        # Of those that satisfy the condition, so that filters see no others.
        held = np.flatnonzero(out[place])
        asked = Asked(
            readings=of.fixes.readings(which[held]),
            objects=of.turn.objects,
            space=of.world.space,
        )
        out[place, held] = satisfied(rules.all[part[place] - 1].steps, asked)
    with_layer = np.flatnonzero(np.isin(part, _with_layers(rules)))
    if len(with_layer):
        out[with_layer] &= _by_layer(part[with_layer], len(which), chosen)
    return out


def _by_layer(
    rules: np.ndarray, count: int, chosen: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """bool[rules, count]: whom the layer of each of some rules (ascending) chooses; `chosen` as `_chosen` gives it."""
    at, rule = chosen
    mine = is_in(rule, rules)
    by_layer = np.zeros((len(rules), count), bool)
    by_layer[np.searchsorted(rules, rule[mine]), at[mine]] = True
    return by_layer


def _still_keys(
    of: "_Asking",
    which: np.ndarray,
    before: Held | None,
    changed: np.ndarray,
) -> np.ndarray:
    """What lies in regions that stand still: of some objects now, of the others as it was before."""
    x, y, fresh = of.world.x[which], of.world.y[which], [np.empty(0, np.int64)]
    for numbers, index in of.rules.still:
        point, row = looked_up(index, x, y, partial(of.fixes.readings, which))
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
    # The region of a rule is held against everybody: rules have no rules.
    kind, everyone = KINDS[name], replace(world, selection=EVERYONE)
    table = queries.table(queries.find(objects))
    criteria = kind.update_criteria(everyone, table, np.arange(len(queries.numbers)))
    row, who = kind.in_cache_area(everyone, criteria, np.flatnonzero(world.alive), 0.0)
    keep = kind.satisfy(everyone, criteria, row, who)
    return packed(queries.numbers[row[keep]], who[keep])
