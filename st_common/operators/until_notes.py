"""Until when members were said to stay: told again only when it is another time (SPEC G8).

What was told last is kept beside the values of aggregates, as a group of the query by the id of the member.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.operators.groups import Groups
from st_common.operators.keys import MASK, SHIFT
from st_common.operators.present import Present
from st_common.operators.relational import Regrouped
from st_common.operators.telling import Lines
from st_common.operators.turn import Turn
from st_common.operators.valid import valid_until

SAME_S = 0.001  # what differs by no more is the same time, found by another way


def told_anew(turn: Turn, lines: Lines | None, groups: Groups) -> tuple[Lines | None, Groups]:
    """The changes of a tick without members that stay as long as was said last, and the groups with what is said now.

    A query that tells each further fix, or everything again, does so whatever the time is.
    """
    if lines is None or not turn.known.valid_until.any():
        return lines, groups
    query = turn.numbering.targets.query[lines.target]
    mine = np.flatnonzero(turn.known.valid_until[query])
    note, sign, value = _notes(turn, query[mine], lines.objects[mine]), lines.sign[mine], lines.value[mine]
    same = (sign == 0) & _is_said(groups, note, value)
    changed = _changed(groups, note[~same], value[~same], sign[~same])
    always = turn.known.every | turn.known.retelling
    keep = np.ones(len(lines), bool)
    keep[mine[same & ~always[query[mine]]]] = False
    left = replace(lines, **{name: getattr(lines, name)[keep] for name in Lines.__dataclass_fields__})
    return left if len(left) else None, groups.changed(removed=changed.removed, added=changed.added)


def said_at_once(turn: Turn, fixes: Present, keys: np.ndarray, at_us: int) -> Groups:
    """What is said of members (`target << 32 | object`) when their queries are registered."""
    query = turn.numbering.targets.query[keys >> SHIFT]
    mine = turn.known.valid_until[query]
    query, who = query[mine], keys[mine] & MASK
    value = valid_until(turn, fixes, query, who, np.ones(len(who), np.int64), at_us)
    if value is None:
        return Groups.empty()
    note = _notes(turn, query, who)
    order = np.argsort(note)
    return Groups(target=note[order], value=value[order])


def _notes(turn: Turn, query: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """The targets by which is kept what was said of members of queries."""
    different, at = np.unique(objects, return_inverse=True)
    names = turn.objects.ids.take(pa.array(different))
    partner = turn.numbering.known_partners_of(names, turn.objects.hashes[different])
    return turn.numbering.targets_of(query, partner[at])


def _is_said(groups: Groups, note: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Whether a time was said already; bool[n]."""
    if not len(groups):
        return np.zeros(len(note), bool)
    at = np.minimum(np.searchsorted(groups.target, note), len(groups) - 1)
    said, is_known = groups.value[at], groups.target[at] == note
    finite = np.isfinite(said) & np.isfinite(value)
    apart = np.abs(np.where(finite, said, np.inf) - np.where(finite, value, 0.0))
    same: np.ndarray = is_known & ((apart <= SAME_S) | (said == value) | (np.isnan(said) & np.isnan(value)))
    return same


def _changed(groups: Groups, note: np.ndarray, value: np.ndarray, sign: np.ndarray) -> Regrouped:
    known = note[np.isin(note, groups.target)]
    stays = np.flatnonzero(sign >= 0)
    order = stays[np.argsort(note[stays])]
    return Regrouped(removed=known, added=Groups(target=note[order], value=value[order]))
