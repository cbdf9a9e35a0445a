"""Changes at ticks: which rows say what entered, left and became another value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.agenda import ticks_of
from st_common.operators.changes import CAUSE, SHARD_SCHEMA, TICK_RANK, Names, change_rows
from st_common.operators.fields import fields_of
from st_common.operators.fixes import ALIVE, NEVER, SILENT
from st_common.operators.groups import Groups
from st_common.operators.keys import MASK, SHIFT, merged, without
from st_common.operators.kind_queries import KindQueries
from st_common.operators.present import Present
from st_common.operators.relational import At, Regrouped
from st_common.operators.targets import NO_PARTNER
from st_common.operators.turn import Turn
from st_common.operators.valid import valid_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Changes before they become rows: those of many ticks become rows at once.

    `objects` are partners where the changes are of groups. `place` is where the fix stands whose columns are shown, -1
    where none are.
    """

    position: np.ndarray
    event_ts: np.ndarray
    fix_ts: np.ndarray
    rank: np.ndarray
    objects: np.ndarray
    target: np.ndarray
    sign: np.ndarray
    cause: np.ndarray
    value: np.ndarray
    place: np.ndarray

    def __len__(self) -> int:
        return len(self.sign)


def joined_lines(parts: Sequence[Lines]) -> Lines:
    """The changes of some ticks together; of one at least."""
    if len(parts) == 1:
        return parts[0]
    return Lines(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Lines.__dataclass_fields__}
    )


def pair_lines(  # noqa: PLR0917 - one tick, taken apart once
    turn: Turn, fixes: Present, before: np.ndarray, minus: np.ndarray, plus: np.ndarray, changed: np.ndarray, at: At
) -> Lines | None:
    """The members that left and entered, and further fixes of members where a query wants them; None without any."""
    told = ~turn.known.grouped & ~turn.known.framed
    of_target = turn.numbering.targets.query
    minus, plus = minus[told[of_target[minus >> SHIFT]]], plus[told[of_target[plus >> SHIFT]]]
    stays = _stays(turn, fixes, before, minus, plus, changed, at.tick)
    keys = np.concatenate([minus, plus, stays])
    if not len(keys):
        return None
    counts = [len(minus), len(plus), len(stays)]
    sign, target, who = np.repeat([-1, 1, 0], counts), keys >> SHIFT, keys & MASK
    cause = np.repeat([-1, CAUSE["enter"], CAUSE["inside"]], counts)
    cause[: counts[0]] = _leaving(turn, fixes, minus)
    query = of_target[target]
    value = valid_until(turn, fixes, query, who, sign, at.tick)
    return Lines(
        position=at.rows(query), event_ts=np.full(len(keys), at.tick), fix_ts=fixes.ts[who],
        rank=np.full(len(keys), TICK_RANK), objects=who, target=target, sign=sign, cause=cause,
        value=np.full(len(keys), np.nan) if value is None else value,
        place=np.where(turn.known.selecting[query], fixes.place[who], -1),
    )  # fmt: skip


def tell_pairs(turn: Turn, fixes: Present, lines: Lines) -> pa.Table:
    """Rows for members that came, left or had a fix."""
    return _rows(names_of(turn), lines, _fields(turn, fixes, lines))


def _rows(names: Names, lines: Lines, fields: pa.Array | None) -> pa.Table:
    columns = {name: getattr(lines, name) for name in Lines.__dataclass_fields__ if name != "place"}
    return change_rows(names, **columns, fields=fields)


def names_of(turn: Turn) -> Names:
    """The names of everything that has a number now."""
    return Names(queries=turn.queries, targets=turn.numbering.targets, objects=turn.objects,
                 partners=turn.numbering.partners)  # fmt: skip


def _stays(  # noqa: PLR0917 - one tick, taken apart once
    turn: Turn,
    fixes: Present,
    before: np.ndarray,
    minus: np.ndarray,
    plus: np.ndarray,
    changed: np.ndarray,
    tick: int,
) -> np.ndarray:
    """The keys of members that stay and had a fix, of queries that want every fix.

    The tick in which a query was registered tells none: its fixes came in part before the query did. Queries that tell
    everything again have all their members here when one of them came, left or had an event (SPEC W6: RSTREAM).
    """
    if not len(before):
        return before
    counts = events_count(turn, tick)
    fixed = _with_fixes(turn, fixes, before, minus, changed, counts)
    return merged(fixed, _retold(turn, before, minus, plus, changed, counts))


def events_count(turn: Turn, tick: int) -> np.ndarray:
    """bool[q]: whether the events of a tick all came after the query; not in the tick in which it was registered."""
    since = turn.known.since
    known = since != NEVER
    pending = ticks_of(np.where(known, since - turn.settings.lateness_us, 0), turn.settings.tick_us)
    counts: np.ndarray = ~known | (pending < tick)
    return counts


def _retold(
    turn: Turn, before: np.ndarray, minus: np.ndarray, plus: np.ndarray, changed: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    wanted = turn.known.retelling & ~turn.known.grouped & ~turn.known.framed
    if not wanted.any():
        return before[:0]
    of_target = turn.numbering.targets.query
    members = before[wanted[of_target[before >> SHIFT]]]
    touched = np.zeros(len(turn.queries), bool)
    had_events = members[changed[members & MASK] & counts[of_target[members >> SHIFT]]]
    touched[of_target[np.concatenate([minus, plus, had_events]) >> SHIFT]] = True
    return without(members[touched[of_target[members >> SHIFT]]], minus)


def _with_fixes(
    turn: Turn, fixes: Present, before: np.ndarray, minus: np.ndarray, changed: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    known = turn.known
    wanted = (known.every | known.valid_until) & ~known.grouped & ~known.windowed & counts
    if not wanted.any():
        return before[:0]
    who, query = before & MASK, turn.numbering.targets.query[before >> SHIFT]
    told = changed[who]
    if known.valid_until.any():  # how long a member stays depends on what its region goes with as well
        told = told | (known.valid_until & _focal_changed(turn, fixes, changed))[query]
    return without(before[wanted[query] & told & (fixes.status[who] == ALIVE)], minus)


def _focal_changed(turn: Turn, fixes: Present, changed: np.ndarray) -> np.ndarray:
    """bool[q]: whether something happened to an object that a query goes with."""
    out = np.zeros(len(turn.queries), bool)
    for known in turn.known.kinds.values():
        found = fixes.lookups.focals(known)
        if len(found):
            of_focal = np.append(changed, False)[found][known.focal_at]
            out[known.numbers[known.focal_row[of_focal]]] = True
    return out


def _leaving(turn: Turn, fixes: Present, minus: np.ndarray) -> np.ndarray:
    """Why members left: what ended the object, else its partner, else a focal object; else they left by themselves."""
    target, who = minus >> SHIFT, minus & MASK
    query = turn.numbering.targets.query[target]
    status = fixes.status[who].copy()
    partnered = turn.known.paired[query] & (status == ALIVE)
    if partnered.any():
        partner = turn.numbering.targets.partner[target[partnered]]
        names, hashes = turn.numbering.partners.ids.take(pa.array(partner)), turn.numbering.partners.hashes[partner]
        status[partnered] = fixes.status[turn.objects.find(hashes, names)]
    for known in (*turn.known.kinds.values(), turn.known.following):
        status = _by_focal(turn, fixes, known, query, status)
    cause = np.where(status == ALIVE, CAUSE["leave"], np.where(status == SILENT, CAUSE["expired"], CAUSE["gone"]))
    return np.where(turn.known.windowed[query], CAUSE["aged"], cause)


def _by_focal(turn: Turn, fixes: Present, known: KindQueries, query: np.ndarray, status: np.ndarray) -> np.ndarray:
    """The status of the first focal object that is not alive, where the member itself is."""
    found = fixes.lookups.focals(known)
    if not len(found):
        return status
    of_focal = np.append(fixes.status, ALIVE)[found][known.focal_at]  # -1: not known, never alive
    dead = np.flatnonzero(of_focal != ALIVE)[::-1]  # the first of a query is written last
    of_query = np.full(len(turn.queries), ALIVE, np.int8)
    of_query[known.numbers[known.focal_row[dead]]] = of_focal[dead]
    return np.where(status == ALIVE, of_query[query], status)


def _fields(turn: Turn, fixes: Present, lines: Lines) -> pa.Array | None:
    wanted = lines.place >= 0
    if not wanted.any():
        return None
    places, at = np.unique(lines.place, return_inverse=True)
    return fields_of(
        turn.queries, turn.objects, query=turn.numbering.targets.query[lines.target], reading=at, wanted=wanted,
        readings=fixes.values.readings(places), geographic=turn.settings.geographic,
    )  # fmt: skip


def group_lines(turn: Turn, before: Groups, changed: Regrouped, at: At, *, again: Groups | None = None) -> Lines | None:
    """Groups that came, went or have another value: - with the old one, + with the new one; 0 for `again`."""
    removed, added, stays = changed.removed, changed.added, again or Groups.empty()
    old = before.value[np.searchsorted(before.target, removed)]
    target = np.concatenate([removed, added.target, stays.target])
    if not len(target):
        return None
    query, group = turn.numbering.targets.query[target], turn.numbering.targets.partner[target]
    is_update = np.concatenate([np.isin(removed, added.target), np.isin(added.target, removed), stays.target < 0])
    sign = np.repeat([-1, 1, 0], [len(removed), len(added), len(stays)])
    plain = np.array([CAUSE["inside"], CAUSE["enter"], CAUSE["leave"]])[sign]  # by sign: 0, 1, -1
    cause = np.where(is_update, CAUSE["value"], plain)
    if at.minus is not None and at.plus is not None:
        cause = np.where(sign < 0, CAUSE[at.minus], CAUSE[at.plus])
    ticks = np.full(len(target), at.tick)
    return Lines(
        position=at.rows(query), event_ts=ticks, fix_ts=ticks,
        rank=np.full(len(target), TICK_RANK if at.plus is None else 1), objects=group,
        target=turn.numbering.targets_of(query, np.full(len(query), NO_PARTNER)), sign=sign, cause=cause,
        value=np.concatenate([old, added.value, stays.value]), place=np.full(len(target), -1),
    )  # fmt: skip


def tell_groups(turn: Turn, lines: Lines | None) -> pa.Table:
    """Rows for groups that came, went or have another value."""
    if lines is None:
        return SHARD_SCHEMA.empty_table()
    names = names_of(turn)
    return _rows(replace(names, objects=names.partners), lines, None)
