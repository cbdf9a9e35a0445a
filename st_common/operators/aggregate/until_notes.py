"""Until when members were said to stay: told again only when it is another time (SPEC G8).

What was told last is kept beside the values of aggregates, as a group of the query by the id of the member.
"""

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.lines import Lines
from st_common.operators.arrays.keys import MASK, SHIFT
from st_common.operators.state.component import Change
from st_common.operators.turn.present import Present
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid import valid_from

SAME_S = 0.001  # what differs by no more is the same time, found by another way


def told_anew(
    turn: Turn, lines: Lines | None, groups: Groups
) -> tuple[Lines | None, Groups]:
    """The changes of some ticks without members that stay as long as was said last.

    A query that tells each further fix, or everything again, does so whatever the time is.

    Args:
        turn: the run.
        lines: what would be told; None: nothing.
        groups: the groups as they were told last; among them are the notes of what was said of members.

    Returns:
        The lines that are left, None without any, and all groups after them.
    """
    if lines is None or not turn.known.valid_until.any():
        return lines, groups
    query = turn.numbering.targets.query[lines.target]
    mine = np.flatnonzero(turn.known.valid_until[query])
    notes = _notes(turn, query[mine], lines.objects[mine])
    same, groups = _one_after_another(lines.take(mine), notes, groups)
    always = turn.known.every | turn.known.retelling
    keep = np.ones(len(lines), bool)
    keep[mine[same & ~always[query[mine]]]] = False
    left = lines.take(np.flatnonzero(keep))
    return left if len(left) else None, groups


def _one_after_another(
    lines: Lines, notes: np.ndarray, groups: Groups
) -> tuple[np.ndarray, Groups]:
    """Which lines say what was said last of their note (bool[n]), and the groups with what is said after all of them.

    What was said last depends on the line before: the n-th lines of all notes, one n after the other.
    """
    order = np.lexsort((lines.event_ts, notes))
    different, note = np.unique(notes, return_inverse=True)
    starts = np.searchsorted(notes[order], different)
    rank = np.arange(len(notes)) - np.repeat(starts, np.diff(np.r_[starts, len(notes)]))
    by_rank, ends = order[np.argsort(rank, kind="stable")], np.cumsum(np.bincount(rank))
    known, said = _said(groups, different)
    removed, same = different[known], np.zeros(len(notes), bool)
    for part in np.split(by_rank, ends[:-1]):
        of, value, stays = note[part], lines.value[part], lines.sign[part]
        same[part] = (stays == 0) & known[of] & _is_same(said[of], value)
        other = ~same[part]
        known[of[other]], said[of[other]] = stays[other] >= 0, value[other]
    last = Groups(target=different[known], value=said[known])
    return same, groups.changed(Change(removed=removed, added=last))


def said_at_once(turn: Turn, fixes: Present, keys: np.ndarray, at_us: int) -> Groups:
    """The notes of what is said of members when their queries are registered.

    Args:
        turn: the run.
        fixes: the last fixes.
        keys: int64, `target << 32 | object`, of members of any queries.
        at_us: the event time, in microseconds.
    """
    query = turn.numbering.targets.query[keys >> SHIFT]
    mine = turn.known.valid_until[query]
    query, who = query[mine], keys[mine] & MASK
    if not len(who):
        return Groups()
    value = valid_from(turn, fixes, query, who, at_us)
    note = _notes(turn, query, who)
    order = np.argsort(note)
    return Groups(target=note[order], value=value[order])


def _notes(turn: Turn, query: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """The targets by which is kept what was said of members of queries."""
    different, at = np.unique(objects, return_inverse=True)
    names = turn.objects.ids.take(pa.array(different))
    partner = turn.numbering.known_partners_of(names, turn.objects.hashes[different])
    return turn.numbering.targets_of(query, partner[at])


def _said(groups: Groups, notes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether something was said of each of the notes, and what."""
    if not len(groups):
        return np.zeros(len(notes), bool), np.full(len(notes), np.nan)
    at = np.minimum(np.searchsorted(groups.target, notes), len(groups) - 1)
    return groups.target[at] == notes, groups.value[at]


def _is_same(said: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Whether two times are the same; bool[n]."""
    finite = np.isfinite(said) & np.isfinite(value)
    apart = np.abs(np.where(finite, said, np.inf) - np.where(finite, value, 0.0))
    same: np.ndarray = (
        (apart <= SAME_S) | (said == value) | (np.isnan(said) & np.isnan(value))
    )
    return same
