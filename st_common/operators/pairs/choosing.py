"""Objects that have a partner, or none: what is told of pairs that choose objects (SPEC G9, X12).

Answers keep the pairs, and for NOT EXISTS who may come first in one. Who is a member follows from how many there are:

    tick                        0    1    2    3
    a may come first            x    x    x    -
    pairs of a                  0    2    1    0
    a has a partner             -    x    x    -       EXISTS        comes at 1, goes at 3
    a has none                  x    -    -    -       NOT EXISTS    comes at 0, goes at 1
                                                       LEFT JOIN     the same, beside the pairs
"""

from dataclasses import dataclass

import numpy as np

from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.arrays.turns import Turns, of_cells
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.course import BEFORE
from st_common.operators.turn.flags import LEFT, PAIRED, SEMI
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first, is_last


def shown_answer(turn: Turn, answer: np.ndarray) -> np.ndarray:
    """The members that an answer at ticks tells of; int64, ascending, keys `target << 32 | object`.

    Args:
        turn: the run; objects that are chosen get targets of their own in its numbering.
        answer: int64, ascending, the keys that are kept: pairs stand in it where they choose objects.
    """
    return shown(turn, answer, Turns.joined([]))[0]


def shown(turn: Turn, before: np.ndarray, turns: Turns) -> tuple[np.ndarray, Turns]:
    """What is told of an answer and of its turns; both as they are where no query chooses objects by others.

    Args:
        turn: the run.
        before: int64, ascending, the keys that are kept before some ticks.
        turns: those that come and go at them.

    Returns:
        The members before the ticks, ascending, and those that come and go.
    """
    if not turn.known.choosing.any():
        return before, turns
    kept, moved = _chooses(turn, before), _chooses(turn, turns.key)
    as_it_is = _is_told(turn, turns.key)
    others = Turns(
        tick=turns.tick[as_it_is],
        key=turns.key[as_it_is],
        comes=turns.comes[as_it_is],
    )
    cells = _cells_of(
        turn,
        np.concatenate([before[kept], turns.key[moved]]),
        np.concatenate([np.full(np.count_nonzero(kept), BEFORE), turns.tick[moved]]),
        np.concatenate([np.ones(np.count_nonzero(kept), bool), turns.comes[moved]]),
    )
    was = cells.key[cells.holds & (cells.tick == BEFORE)]
    held = np.zeros(len(cells.key), bool)  # who held before all has a cell of its own
    members = np.sort(np.concatenate([before[_is_told(turn, before)], was]))
    chosen = of_cells(cells.key, cells.tick, cells.holds, held)
    return members, Turns.joined([others, chosen])


def _chooses(turn: Turn, keys: np.ndarray) -> np.ndarray:
    """Which keys are of queries that choose objects by others; bool."""
    query = turn.numbering.targets.query[keys >> SHIFT]
    is_chosen: np.ndarray = turn.known.choosing[query] != PAIRED
    return is_chosen


def _is_told(turn: Turn, keys: np.ndarray) -> np.ndarray:
    """Which keys are told as they are: pairs, but for those that only choose objects; bool."""
    targets, target = turn.numbering.targets, keys >> SHIFT
    how, is_pair = (
        turn.known.choosing[targets.query[target]],
        targets.partner[target] != NO_PARTNER,
    )
    is_told: np.ndarray = (how == PAIRED) | ((how == LEFT) & is_pair)
    return is_told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Whether objects are members from ticks on: each pair of a key and a tick at which that may change, once."""

    key: np.ndarray
    tick: np.ndarray
    holds: np.ndarray


def _cells_of(
    turn: Turn, key: np.ndarray, tick: np.ndarray, comes: np.ndarray
) -> _Cells:
    """Whether objects are members after all that came and went of them up to each tick.

    Args:
        turn: the run.
        key: int64[n], keys of pairs, and without a partner of who may come first.
        tick: int64[n], when each comes or goes.
        comes: bool[n].
    """
    targets, who = turn.numbering.targets, key & MASK
    query, is_pair = (
        targets.query[key >> SHIFT],
        targets.partner[key >> SHIFT] != NO_PARTNER,
    )
    own = turn.numbering.targets_of(query, np.full(len(key), NO_PARTNER))
    member = packed(own, who)
    order = np.lexsort((tick, member))
    member, tick, is_pair = member[order], tick[order], is_pair[order]
    moves = np.where(comes[order], 1, -1)
    pairs = _counted(member, np.where(is_pair, moves, 0))
    firsts = _counted(member, np.where(is_pair, 0, moves))
    is_semi = turn.known.choosing[query[order]] == SEMI
    holds = np.where(is_semi, pairs > 0, (firsts > 0) & (pairs == 0))
    last = is_last(member, tick)
    return _Cells(key=member[last], tick=tick[last], holds=holds[last])


def _counted(member: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The sum of moves so far, for each member by itself; members are sorted."""
    total = np.cumsum(moves)
    begins = np.flatnonzero(is_first(member))
    before = np.concatenate([np.zeros(1, np.int64), total])[begins]
    so_far: np.ndarray = total - np.repeat(
        before, np.diff(np.append(begins, len(member)))
    )
    return so_far
