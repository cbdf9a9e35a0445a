"""JOIN of a stream with itself: pairs of two objects that are near, or have the same keys (SPEC G7, B17)."""

import re
from dataclasses import dataclass

import numpy as np

from st_common.query.plan import PairJoin
from st_common.reference.columns import Fixes, equal
from st_common.reference.metric import Bools, Ints, Members, Objects, everyone

_WORDS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|\b(?:AND|BETWEEN|CASE|END)\b""",
    re.IGNORECASE,
)
"""Texts and names in quotes, and what conditions are cut by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Pairs: the row of a fix, its partner (None without a join), and whether the pair is beyond doubt. Of length m."""

    row: Ints
    partner: Objects
    sure: Bools


def pairs(join: PairJoin, fixes: Fixes, left: Members) -> Joined:
    """Every pair of an object of `left` and any other that lives; where both are in `left` there are two of them."""
    keys = [fixes.of.texts(key, fixes.rows) for key in join.keys]
    rows, others, sure = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [_NONE]
    for row in np.flatnonzero(left.maybe).tolist():
        near = _near(join, fixes, row)
        both = near.maybe.copy()
        both[row] = False
        for key in keys:
            both &= equal(key, key[row]) & (key[row] is not None)
        partners = np.flatnonzero(both)
        rows.append(np.full(len(partners), row))
        others.append(partners)
        sure.append(near.sure[partners] & left.sure[row])
    partner = fixes.ids[np.concatenate(others)]
    return Joined(row=np.concatenate(rows), partner=partner, sure=np.concatenate(sure))


def asks_of_pairs(where: str | None) -> bool:
    """Whether a condition names what only a pair has."""
    return where is not None and ('"other.' in where or '"pair.' in where)


def cut(where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The conditions that AND joins: those on a fix alone, and those that name what it is joined with.

    Example:
        free = 1 AND load > "other.size" AND x BETWEEN 1 AND 2    free = 1, x BETWEEN 1 AND 2;    load > "other.size"
    """
    parts, start, depth, ranges = list[str](), 0, 0, 0
    for word in _WORDS.finditer(where):
        said = word.group().upper()
        depth += {"(": 1, "CASE": 1, ")": -1, "END": -1}.get(said, 0)
        ranges += said == "BETWEEN" and depth == 0
        if said != "AND" or depth:
            continue
        if ranges:
            ranges -= 1
            continue
        parts.append(where[start : word.start()].strip())
        start = word.end()
    parts.append(where[start:].strip())
    of_pairs = tuple(part for part in parts if asks_of_pairs(part))
    return tuple(part for part in parts if part not in of_pairs), of_pairs


def of_which(condition: str, fixes: Fixes, near: Joined) -> Joined:
    """The pairs of which a condition on both is true, all of it asked of each pair; null is not."""
    place = {name: row for row, name in enumerate(fixes.ids)}
    others = np.array([place[name] for name in near.partner], np.int64)
    values = fixes.of.of_pairs(condition, fixes.rows[near.row], fixes.rows[others])
    keep = np.array([value is not None and bool(value) for value in values], bool)
    return Joined(row=near.row[keep], partner=near.partner[keep], sure=near.sure[keep])


def nearest_of(k: int, fixes: Fixes, near: Joined) -> Joined:
    """Of the pairs of each object those with its k nearest others, of equally far ones the first by id.

    Where it is in doubt who pairs, so it is who is among the first k.
    """
    place = {name: row for row, name in enumerate(fixes.ids)}
    others = np.array([place[name] for name in near.partner], np.int64)
    keep, sure = np.zeros(len(near.row), np.bool_), near.sure.copy()
    for row in np.unique(near.row).tolist():
        mine = np.flatnonzero(near.row == row)
        x, y = fixes.x[others[mine]], fixes.y[others[mine]]
        far = fixes.metric.rank(x, y, fixes.x[row], fixes.y[row])
        names = near.partner[mine].tolist()
        order = sorted(range(len(mine)), key=lambda at: (far[at], names[at]))
        keep[mine[order[:k]]] = True
        if not fixes.metric.doubts or len(mine) <= k:
            continue
        last = far[order[k - 1]]
        clear = fixes.metric.slack(last)
        is_sure = near.sure[mine].all() & (far < last - clear)
        keep[mine] |= (far <= last + clear) | (not near.sure[mine].all())
        sure[mine] &= is_sure
    return Joined(row=near.row[keep], partner=near.partner[keep], sure=sure[keep])


_NONE = np.empty(0, np.bool_)


def _near(join: PairJoin, fixes: Fixes, row: int) -> Members:
    """Who is at most the distance away, or anyone."""
    if join.distance_m is None:
        return everyone(len(fixes))
    x, y = fixes.x, fixes.y
    return fixes.metric.is_within(x, y, x[row], y[row], join.distance_m)
