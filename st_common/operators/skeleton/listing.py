"""Lists of the objects that may satisfy rules: from the sorted columns of conditions, from regions, from bits (X13)."""

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.expressions.conditions import Conditions
from st_common.operators.expressions.seen import Seen
from st_common.operators.skeleton.rules import Rules
from st_common.operators.skeleton.selection import Lists, no_lists
from st_common.runs import ranges

Runs = tuple[np.ndarray, np.ndarray, np.ndarray]  # owner, start, count

_BYTES = 64  # of the bits of an object, looked at together
FEW = 4
"""So many times the root of the number of objects are few: to go over a list of them costs less than to search."""


def few_of(objects: int) -> int:
    """The length up to which lists of so many objects are short; of 10,000 objects 401."""
    return int(FEW * np.sqrt(objects)) + 1


def list_conditions(
    rules: Rules,
    simple: np.ndarray,
    seen: Seen,
    places: np.ndarray,
    objects: np.ndarray,
) -> Lists:
    """Lists by simple conditions: for each the objects of that one of its atoms that has the fewest.

    `speed > 50 AND type = 'bus'` has two atoms; if few objects are buses its list are these. Values are sorted once for
    a column, so that an atom's objects are a run of them.

    Args:
        rules: the rules.
        simple: bool[conditions], which are simple.
        seen: the columns that conditions name, by place of fixes.
        places: int64[n], where the last fix of each object stands.
        objects: int64[n], the objects that may be in a list.
    """
    conditions, parts, members, first = rules.conditions, [], [objects[:0]], 0
    for column in range(len(conditions.columns)):
        atoms = np.flatnonzero(conditions.column == column)
        is_text = conditions.is_text[atoms]
        for of, runs_of, values in (
            (atoms[~is_text], _in_ranges, seen.numbers[column]),
            (atoms[is_text], _with_texts, seen.texts[column]),
        ):
            if len(of):
                (owner, start, count), order = runs_of(conditions, of, values[places])
                # Members of all columns stand one behind the other.
                parts.append((owner, start + first, count))
                members.append(objects[order])
                first += len(order)
    owner, start, count = _by_owner(parts)
    size = np.bincount(owner, weights=count, minlength=len(conditions.column))
    best = np.where(simple, _fewest(conditions, size), -1)
    of_rule = np.append(best, -1)[rules.condition]
    most = np.where(of_rule < 0, len(objects), np.append(size, 0)[of_rule]).astype(
        np.int64
    )
    return Lists(
        of_rule=of_rule,
        size=most,
        owner=owner,
        start=start,
        count=count,
        members=np.concatenate(members),
    )


def _in_ranges(
    conditions: Conditions, atoms: np.ndarray, values: np.ndarray
) -> tuple[Runs, np.ndarray]:
    """For atoms that ask for a range the run of places that may lie in it, and the order in which these are runs."""
    order = np.argsort(values)
    # NaN sorts last: who has no value is in no range.
    ordered = values[order][: len(values) - int(np.count_nonzero(np.isnan(values)))]
    start = np.searchsorted(ordered, conditions.low[atoms], side="left")
    end = np.searchsorted(ordered, conditions.high[atoms], side="right")
    return (atoms, start, np.maximum(end - start, 0)), order


def _with_texts(
    conditions: Conditions, atoms: np.ndarray, codes: np.ndarray
) -> tuple[Runs, np.ndarray]:
    """For atoms that ask for texts the runs of places that have one, and the order in which these are runs."""
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(conditions.asked, atoms << SHIFT)
    asked = np.searchsorted(conditions.asked, (atoms + 1) << SHIFT) - first
    code = conditions.asked[ranges(first, asked)] & MASK
    start = np.searchsorted(codes[order], code, side="left")
    return (
        np.repeat(atoms, asked),
        start,
        np.searchsorted(codes[order], code, side="right") - start,
    ), order


def _by_owner(parts: list[Runs]) -> Runs:
    none = np.empty(0, np.int64)
    owner, start, count = (
        np.concatenate([none, *(part[n] for part in parts)]) for n in range(3)
    )
    order = np.argsort(owner, kind="stable")
    return owner[order], start[order], count[order]


def _fewest(conditions: Conditions, size: np.ndarray) -> np.ndarray:
    """The atom of each condition that has the fewest objects, -1 without any."""
    best, least = (
        np.full(len(conditions.texts), -1),
        np.full(len(conditions.texts), np.inf),
    )
    for atoms in conditions.rounds:
        of = np.where(atoms >= 0, np.append(size, np.inf)[atoms], np.inf)
        better = of < least
        best, least = np.where(better, atoms, best), np.where(better, of, least)
    return best


def list_keys(keys: np.ndarray, has_region: np.ndarray, objects: np.ndarray) -> Lists:
    """Lists by regions.

    Args:
        keys: int64, ascending, `rule << 32 | object`: who lies in the region of which rule.
        has_region: bool[1 + rules], the rules that have one; a rule without has no list.
        objects: int64[n], of whom `keys` speaks: more cannot satisfy any rule.
    """
    rule = np.flatnonzero(has_region)
    start = np.searchsorted(keys, rule << SHIFT)
    count = np.searchsorted(keys, (rule + 1) << SHIFT) - start
    of_rule, size = (
        np.where(has_region, np.arange(len(has_region)), -1),
        np.full(len(has_region), len(objects)),
    )
    size[rule] = count
    return Lists(
        of_rule=of_rule,
        size=size,
        owner=rule,
        start=start,
        count=count,
        members=keys & MASK,
    )


def list_bits(
    asked: np.ndarray, bits: np.ndarray, objects: np.ndarray, rules: int
) -> Lists:
    """Lists by bits: where they are short (`few_of`), else their sizes alone.

    Args:
        asked: int64, the rules that have a bit, ascending.
        bits: uint8[all objects, bytes], a bit for each of these, as `asked_together` gives them.
        objects: int64[n], the objects that may be in a list.
        rules: how many rules there are, that of all objects included.
    """
    if not len(asked):
        return no_lists(rules, objects)
    size, of_rule, keys = (
        np.full(rules, len(objects)),
        np.full(rules, -1),
        [objects[:0]],
    )
    for start in range(0, bits.shape[1], _BYTES):
        held = np.unpackbits(bits[objects, start : start + _BYTES], axis=1)
        part = asked[start * 8 : (start + _BYTES) * 8]
        count = held[:, : len(part)].sum(axis=0, dtype=np.int64)
        size[part] = count
        # Nobody goes over a long list: of these the size alone is of use.
        short = np.flatnonzero(count <= few_of(len(objects)))
        of_rule[part[short]] = part[short]
        column, row = np.nonzero(held[:, short].T)
        keys.append((part[short][column] << SHIFT) | objects[row])
    lists = list_keys(np.concatenate(keys), of_rule >= 0, objects)
    return Lists(
        of_rule=of_rule,
        size=size,
        owner=lists.owner,
        start=lists.start,
        count=lists.count,
        members=lists.members,
    )
