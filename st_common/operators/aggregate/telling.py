"""Changes at ticks: which rows say what entered, left and became another value."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.groups import Groups
from st_common.operators.aggregate.lines import Lines
from st_common.operators.aggregate.stretch import Stretch
from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.skeleton.kind_queries import KindQueries
from st_common.operators.state.component import Change
from st_common.operators.state.fixes import ALIVE, SILENT
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.changes import (
    CAUSE,
    SHARD_SCHEMA,
    TICK_RANK,
    Names,
    change_rows,
)
from st_common.operators.turn.nearness import Held, Nearness, nearness
from st_common.operators.turn.places import nowhere, places_of
from st_common.operators.turn.present import Present
from st_common.operators.turn.shown import shown_fields
from st_common.operators.turn.swapping import At
from st_common.operators.turn.turn import Turn
from st_common.operators.turn.valid import Asked, valid_until
from st_common.runs import ranges

_CAUSE_OF_SIGN = np.array([CAUSE["inside"], CAUSE["enter"], CAUSE["leave"]])
"""By sign: 0, 1, -1."""


def wants_members(turn: Turn) -> np.ndarray:
    """The queries of which members are told or counted that neither come nor go; bool[queries]."""
    known = turn.known
    fixes = (known.every | known.valid_until | known.showing_near) & ~known.windowed
    return np.where(
        known.grouped, ~known.windowed, fixes | (known.retelling & ~known.framed)
    )


def pair_lines(stretch: Stretch) -> Lines | None:
    """What is told of members at some ticks; None where nothing is.

    Returns:
        A line for each that left (-) or entered (+), and for further fixes of members (0) where a query wants them. Why
        one left is what ended its object (gone, expired), else what ended its partner, else a focal object; else it
        left by itself.
    """
    turn, course, turns = stretch.turn, stretch.course, stretch.turns
    of_target = turn.numbering.targets.query
    told = turn.known.tells_members
    mine = told[of_target[turns.key >> SHIFT]]
    stay_at, stay = _stays(stretch, told)
    at = np.concatenate([turns.tick[mine], stay_at])
    key = np.concatenate([turns.key[mine], stretch.members.key[stay]])
    if not len(key):
        return None
    moves = np.where(turns.comes[mine], 1, -1)
    sign = np.concatenate([moves, np.zeros(len(stay), np.int64)])
    query, version = of_target[key >> SHIFT], course.at_ticks(key & MASK, at)
    asked = Asked(query=query, row=version, at=at, at_us=stretch.tick[at])
    near = _near(stretch, key, at, sign)
    return Lines(
        position=stretch.position[at],
        event_ts=stretch.tick[at],
        fix_ts=course.ts[version],
        **places_of(course, version),
        rank=np.full(len(key), TICK_RANK),
        objects=key & MASK,
        target=key >> SHIFT,
        sign=sign,
        cause=_causes(stretch, key, at, sign),
        value=_until(stretch, asked, sign),
        place=np.where(turn.known.selecting[query], course.place[version], -1),
        other=_others_shown(stretch, key >> SHIFT, at),
        nth=near.rank,
        far=near.distance,
    )


def _until(stretch: Stretch, asked: Asked, sign: np.ndarray) -> np.ndarray:
    """Until when members stay that are told of, of queries that say it; float64[n], NaN of others and of who left."""
    until = np.full(len(sign), np.nan)
    here = np.flatnonzero((sign >= 0) & stretch.turn.known.valid_until[asked.query])
    until[here] = valid_until(stretch.turn, stretch.course, asked.take(here))
    return until


def _causes(
    stretch: Stretch, key: np.ndarray, at: np.ndarray, sign: np.ndarray
) -> np.ndarray:
    """Why members are told of, by their sign; of those that leave by what ended."""
    cause: np.ndarray = _CAUSE_OF_SIGN[sign]
    gone = np.flatnonzero(sign < 0)
    cause[gone] = _leaving(stretch, key[gone], at[gone])
    return cause


def _others_shown(stretch: Stretch, target: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Where the fix of the other object of each pair stands at a tick, of queries that show it; int64[n], else -1."""
    turn, course = stretch.turn, stretch.course
    place = np.full(len(target), -1)
    shown = np.flatnonzero(
        turn.known.showing_other[turn.numbering.targets.query[target]]
    )
    if len(shown):
        others = stretch.fixes.lookups.others(target[shown])
        shown, others = shown[others >= 0], others[others >= 0]
        place[shown] = course.place[course.at_ticks(others, at[shown])]
    return place


def _near(
    stretch: Stretch, key: np.ndarray, at: np.ndarray, sign: np.ndarray
) -> Nearness:
    """Which of the nearest each line is, of queries that show it; nothing of who left."""
    turn, members = stretch.turn, stretch.members
    query = turn.numbering.targets.query[key >> SHIFT]
    here = np.flatnonzero(turn.known.showing_near[query] & (sign >= 0))
    if not len(here):
        return Nearness.nothing(len(key))
    cells, cell_of = np.unique(packed(query[here], at[here]), return_inverse=True)
    cell, member = members.spells.at(cells >> SHIFT, cells & MASK)
    held = Held(
        cell=cell,
        query=members.spells.query[member],
        at=(cells & MASK)[cell],
        row=members.version[member],
        object=members.key[member] & MASK,
    )
    lookups, course = stretch.fixes.lookups, stretch.course
    ranked = nearness(turn, lookups, course, held)
    return ranked.of(cell_of, key[here] & MASK).at(here, len(key))


def tell_pairs(turn: Turn, fixes: Present, lines: Lines) -> pa.Table:
    """Rows for members that came, left or had a fix."""
    return _rows(turn.names, lines, _fields(turn, fixes, lines))


def _rows(names: Names, lines: Lines, fields: pa.Array | None) -> pa.Table:
    return change_rows(names, **lines.columns, fields=fields)


def _stays(stretch: Stretch, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ticks and places of members that stay there and are told of.

    They had a fix, and their query wants every fix; or it tells everything again (SPEC W6: RSTREAM). The tick in which
    a query was registered tells none of its fixes: they came in part before the query did.
    """
    parts = [_with_fixes(stretch), _retold(stretch, told)]
    at, member = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return at, member


def _with_fixes(stretch: Stretch) -> tuple[np.ndarray, np.ndarray]:
    known, members = stretch.turn.known, stretch.members
    spells = members.spells
    wanted = (known.every | known.valid_until) & ~known.grouped & ~known.windowed
    member = np.flatnonzero(members.anew & wanted[spells.query])
    at = spells.start[member]
    goes_with = known.valid_until | (known.showing_near & known.every)
    if goes_with.any():
        # How long a member stays, and how near it is, depends on what its query goes with as well.
        query, tick = _focal_changes(stretch, goes_with)
        cell, more = spells.at(query, tick)
        stays = spells.start[more] < tick[cell]
        at, member = (
            np.concatenate([at, tick[cell[stays]]]),
            np.concatenate([member, more[stays]]),
        )
    at, member = _with_others(stretch, at, member, wanted)
    alive = stretch.course.status[members.version[member]] == ALIVE
    query = spells.query[member]
    # Whoever asks about rows wants them as they are: what came in part before the query as well.
    told = alive & (stretch.counts(query, at) | known.nested[query])
    return at[told], member[told]


def _with_others(
    stretch: Stretch, at: np.ndarray, member: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ticks and places of members that have a fix, and of pairs whose other object has one, if they show it."""
    turn, members = stretch.turn, stretch.members
    spells = members.spells
    pairs = np.flatnonzero(
        (wanted & turn.known.showing_other)[spells.query]
        & (spells.start < spells.until)
    )
    if not len(pairs):
        return at, member
    others = stretch.fixes.lookups.others(members.key[pairs] >> SHIFT)
    pairs, others = pairs[others >= 0], others[others >= 0]
    place, version = stretch.course.versions_within(
        others, spells.start[pairs], spells.until[pairs]
    )
    tick, row = stretch.course.tick[version], pairs[place]
    # With a fix of the first object at the same tick a spell of its own begins.
    also = (tick > spells.start[row]) & (tick < spells.until[row])
    return np.concatenate([at, tick[also]]), np.concatenate([member, row[also]])


def _focal_changes(
    stretch: Stretch, goes_with: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of some queries (bool[queries]) go with an object that changed, and the ticks at which it did."""
    turn, course = stretch.turn, stretch.course
    moved = np.zeros((len(stretch.tick), len(turn.queries)), bool)
    for known in turn.known.kinds.values():
        column = course.columns_of(stretch.fixes.lookups.focals(known))[known.focal_at]
        place = np.flatnonzero(column >= 0)
        tick, which = np.nonzero(course.changed[:, column[place]])
        moved[tick, known.numbers[known.focal_row[place[which]]]] = True
    tick, query = np.nonzero(moved & goes_with)
    return query, tick


def _retold(stretch: Stretch, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All members of queries that tell everything again, at ticks at which one of them came, left or had an event."""
    turn, members, turns = stretch.turn, stretch.members, stretch.turns
    # One member that moves changes which of the nearest all others are, about which another query asks.
    asked = turn.known.nested & turn.known.showing_near
    spells, wanted = members.spells, (turn.known.retelling | asked) & told
    if not wanted.any():
        return members.key[:0], members.key[:0]
    query = turn.numbering.targets.query[turns.key >> SHIFT]
    had = np.flatnonzero(members.anew & wanted[spells.query])
    counts = stretch.counts(spells.query[had], spells.start[had])
    had = had[counts | asked[spells.query[had]]]
    differs = wanted[query]
    cells = np.unique(
        packed(
            np.concatenate([spells.query[had], query[differs]]),
            np.concatenate([spells.start[had], turns.tick[differs]]),
        )
    )
    tick = cells & MASK
    cell, member = spells.at(cells >> SHIFT, tick)
    stays = members.since[member] < tick[cell]
    return tick[cell[stays]], member[stays]


def _leaving(stretch: Stretch, key: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Why members left: what ended the object, else its partner, else a focal object; else they left by themselves."""
    turn, target = stretch.turn, key >> SHIFT
    query = turn.numbering.targets.query[target]
    status = stretch.course.status_at(key & MASK, at)
    partner = turn.numbering.targets.partner[target]
    partnered = turn.known.paired[query] & (status == ALIVE) & (partner != NO_PARTNER)
    if partnered.any():
        partner = partner[partnered]
        names, hashes = (
            turn.numbering.partners.ids.take(pa.array(partner)),
            turn.numbering.partners.hashes[partner],
        )
        status[partnered] = stretch.course.status_at(
            turn.objects.find(hashes, names), at[partnered]
        )
    for known in (*turn.known.kinds.values(), turn.known.following):
        _by_focal(stretch, known, query, at, status)
    cause = np.where(
        status == ALIVE,
        CAUSE["leave"],
        np.where(status == SILENT, CAUSE["expired"], CAUSE["gone"]),
    )
    return np.where(turn.known.windowed[query], CAUSE["aged"], cause)


def _by_focal(
    stretch: Stretch,
    known: KindQueries,
    query: np.ndarray,
    at: np.ndarray,
    status: np.ndarray,
) -> None:
    """Writes the status of the first focal object that is not alive, where the member itself is."""
    focals = stretch.fixes.lookups.focals(known)
    if stretch.course.all_alive(focals):
        return
    row_of = np.full(len(stretch.turn.queries), -1)
    row_of[known.numbers] = np.arange(len(known.numbers))
    asked = np.flatnonzero((status == ALIVE) & (row_of[query] >= 0))
    row = row_of[query[asked]]
    low = np.searchsorted(known.focal_row, row)
    counts = np.searchsorted(known.focal_row, row, side="right") - low
    place, of = ranges(low, counts), np.repeat(asked, counts)
    of_focal = stretch.course.status_at(focals[known.focal_at[place]], at[of])
    dead = np.flatnonzero(of_focal != ALIVE)[
        ::-1
    ]  # the first of a query is written last
    status[of[dead]] = of_focal[dead]


def _fields(turn: Turn, fixes: Present, lines: Lines) -> pa.Array | None:
    """What lines show whose `place` says of which version of a fix."""
    if not (lines.place >= 0).any():
        return None
    both = np.concatenate([lines.place, lines.other])
    places, at = np.unique(both, return_inverse=True)
    return shown_fields(
        turn,
        query=turn.numbering.targets.query[lines.target],
        reading=at[: len(lines)],
        other=np.where(lines.other < 0, -1, at[len(lines) :]),
        readings=fixes.values.readings(places),
        wanted=lines.place >= 0,
        target=lines.target,
        near=Nearness(rank=lines.nth, distance=lines.far),
    )


def _have_other_values(
    removed: np.ndarray, added: np.ndarray, stays: int
) -> np.ndarray:
    """Whether each line is of a group that goes with one value and comes with another; those that stay are last."""
    goes, comes = np.isin(removed, added), np.isin(added, removed)
    return np.concatenate([goes, comes, np.zeros(stays, bool)])


def group_lines(
    turn: Turn,
    before: Groups,
    changed: Change[Groups],
    at: At,
    *,
    again: Groups | None = None,
) -> Lines | None:
    """What is told of groups that came, went or have another value.

    Args:
        turn: the run.
        before: the groups as they were told last.
        changed: which of them go, and which come.
        at: when, why, and by which row of the log.
        again: groups that are told again though nothing changed (RSTREAM).

    Returns:
        `-` with the old value, `+` with the new one, 0 for those `again`; None where nothing is told.
    """
    removed, added, stays = changed.removed, changed.added, again or Groups()
    old = before.take(np.searchsorted(before.target, removed))
    target, value, text = (
        np.concatenate([getattr(part, name) for part in (old, added, stays)])
        for name in ("target", "value", "text")
    )
    if not len(target):
        return None
    query = turn.numbering.targets.query[target]
    group = turn.numbering.targets.partner[target]
    sign = np.repeat([-1, 1, 0], [len(removed), len(added), len(stays)])
    if at.minus is not None and at.plus is not None:
        cause = np.where(sign < 0, CAUSE[at.minus], CAUSE[at.plus])
    else:
        has_other_value = _have_other_values(removed, added.target, len(stays))
        cause = np.where(has_other_value, CAUSE["value"], _CAUSE_OF_SIGN[sign])
    ticks = np.full(len(target), at.tick)
    return Lines(
        position=at.rows(query),
        event_ts=ticks,
        fix_ts=ticks,
        **nowhere(len(target)),
        rank=np.full(len(target), TICK_RANK if at.plus is None else 1),
        objects=group,
        target=turn.numbering.targets_of(query, np.full(len(query), NO_PARTNER)),
        sign=sign,
        cause=cause,
        value=value,
        place=text,
    )


def tell_groups(turn: Turn, lines: Lines | None) -> pa.Table:
    """Rows for groups that came, went or have another value; a row's object is the group's name."""
    if lines is None:
        return SHARD_SCHEMA.empty_table()
    names, places = turn.names, pa.array(lines.place, mask=lines.place < 0)
    fields = names.partners.ids.take(places)
    return _rows(replace(names, objects=names.partners), lines, fields)
