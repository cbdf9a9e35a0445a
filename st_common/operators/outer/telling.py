"""Changes of answers about rows: of groups of rows, and of rows that are told as they are."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate.lines import Lines
from st_common.operators.aggregate.regrouping import Parts, regroup
from st_common.operators.aggregate.relational import amounts_of
from st_common.operators.arrays.keys import MASK, SHIFT, packed
from st_common.operators.outer.remembered import OuterGroups, OuterRows
from st_common.operators.outer.signed import FIX, Signed
from st_common.operators.outer.specs import OuterSpecs
from st_common.operators.outer.versions import NONE, Versions
from st_common.operators.state.fixes import LastFixes
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.changes import CAUSE, SHARD_SCHEMA, TICK_RANK, change_rows
from st_common.operators.turn.last_known import last_known, readings_of
from st_common.operators.turn.places import nowhere, places_of
from st_common.operators.turn.spells import Spells
from st_common.operators.turn.turn import Turn
from st_common.runs import is_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """A run as queries above rows see it, and its instants; see `regrouping.Times`."""

    turn: Turn
    tick: np.ndarray
    position: np.ndarray


def regrouped(
    above: Above,
    versions: Versions,
    groups: OuterGroups,
    again: np.ndarray,
    *,
    with_changes: bool,
) -> tuple[Lines | None, OuterGroups]:
    """What becomes of the groups of rows.

    Args:
        above: the run and its instants.
        versions: the rows of queries with an aggregate.
        groups: the groups as they were told last.
        again: int64, ascending, `target << 32 | instant`: groups that are told though no row says so.
        with_changes: whether the whole answer is told where it changed, of queries that say so (`RSTREAM`).

    Returns:
        The lines that are told, None for none, and all groups afterwards.
    """
    query = above.turn.numbering.targets.query[versions.rows.target]
    order = np.lexsort((versions.start, query))
    rows = versions.rows.take(order)
    parts = Parts(
        spells=Spells(
            query[order], versions.start[order], versions.until[order], len(above.tick)
        ),
        group=rows.group,
        amounts=_amounts(above.turn, query[order], rows),
        again=again,
        with_changes=with_changes,
    )
    lines, after = regroup(above, parts, groups)
    return lines, OuterGroups.of(after)


def _amounts(turn: Turn, query: np.ndarray, rows: OuterRows) -> np.ndarray:
    """What values are made of; a row without an argument is another one each time, as no object is it."""
    return amounts_of(turn, query, np.full(len(rows), NO_PARTNER), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """Why all that leaves and all that comes does so: names of causes."""

    minus: str
    plus: str

    def of(self, sign: np.ndarray) -> np.ndarray:
        """The causes of changes with these signs; int64[n], places in `CAUSES`."""
        return np.where(sign < 0, CAUSE[self.minus], CAUSE[self.plus])


def with_causes(lines: Lines, causes: Causes, rank: int) -> Lines:
    """Lines with other causes, and another place in the order of what is told at one time."""
    return replace(lines, cause=causes.of(lines.sign), rank=np.full(len(lines), rank))


def tell_rows(
    turn: Turn,
    signed: Signed,
    versions: Versions,
    fixes: LastFixes,
    causes: Causes | None,
) -> pa.Table:
    """Rows that came, left or have other values now, as they are.

    Args:
        turn: the run.
        signed: what was told of the queries below.
        versions: the rows of queries without an aggregate.
        fixes: the last ones of all objects before the run.
        causes: why rows come and go; None: as it was told below, or by what is asked of them.
    """
    begins, ends = versions.begins != NONE, versions.ends != NONE
    place = np.concatenate([np.flatnonzero(ends), np.flatnonzero(begins)])
    sign = np.repeat([-1, 1], [np.count_nonzero(ends), np.count_nonzero(begins)])
    if not len(place):
        return SHARD_SCHEMA.empty_table()
    row = np.where(sign < 0, versions.ends[place], versions.begins[place])
    rows = versions.rows.take(place)
    is_update, is_same = _pairs(row, sign, rows)
    own = _causes(signed.cause[row], signed.weight[row], sign, is_update)
    cause = own if causes is None else causes.of(sign)
    kept = np.flatnonzero(~is_same)
    row, sign = row[kept], sign[kept]
    lines = _Lines(
        query=signed.query[row],
        at=signed.at[row],
        sign=sign,
        cause=cause[kept],
        **{name: getattr(signed, name)[row] for name in FIX},
        rank=signed.rank[row],
    )
    told = _rows(turn, signed, rows.take(kept), lines)
    if causes is not None:
        return told
    came = np.zeros(len(versions.start), bool)
    came[place[kept][sign > 0]] = True
    again = _told_again(turn, signed, versions, lines, came, fixes)
    return pa.concat_tables([told, again])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """What is told of n rows beside what they show; `at` are the places of instants, the others as of `Signed`."""

    query: np.ndarray
    at: np.ndarray
    sign: np.ndarray
    cause: np.ndarray
    fix_ts: np.ndarray
    x: np.ndarray
    y: np.ndarray
    rank: np.ndarray


def _rows(turn: Turn, signed: Signed, rows: OuterRows, lines: _Lines) -> pa.Table:
    target = turn.numbering.targets_of(lines.query, rows.text)
    return change_rows(
        replace(turn.names, objects=turn.numbering.partners),
        position=signed.position[lines.at],
        event_ts=signed.tick[lines.at],
        objects=rows.group,
        target=target,
        sign=lines.sign,
        cause=lines.cause,
        value=rows.value,
        fields=rows.fields,
        **{name: getattr(lines, name) for name in FIX},
        rank=lines.rank,
    )


def _told_again(
    turn: Turn,
    signed: Signed,
    versions: Versions,
    told: _Lines,
    came: np.ndarray,
    fixes: LastFixes,
) -> pa.Table:
    """Rows that stay where others of their query changed, of queries that tell everything again (SPEC W6: RSTREAM).

    Args:
        turn: the run.
        signed: what was told of the queries below.
        versions: the rows of queries without an aggregate.
        told: what is told of those that changed.
        came: bool[n], which of the versions are told when they begin.
        fixes: the last ones of all objects before the run.
    """
    mine = np.flatnonzero(turn.known.of(OuterSpecs).retelling[told.query])
    if not len(mine):
        return SHARD_SCHEMA.empty_table()
    cells = np.unique(packed(told.query[mine], told.at[mine]))
    query, at = cells >> SHIFT, cells & MASK
    owner = turn.numbering.targets.query[versions.rows.target]
    order = np.lexsort((versions.start, owner))
    held = versions.take(order)
    spells = Spells(owner[order], held.start, held.until, len(signed.tick))
    cell, row = spells.at(query, at)
    stays = (held.start[row] < at[cell]) | ~came[order][row]
    cell, row = cell[stays], row[stays]
    count, rows = len(cell), held.rows.take(row)
    again = _Lines(
        query=query[cell],
        at=at[cell],
        sign=np.zeros(count, np.int64),
        cause=np.full(count, CAUSE["inside"]),
        fix_ts=signed.tick[at[cell]],
        **_places_then(turn, signed, query[cell], rows.group, at[cell], fixes),
        rank=np.full(count, TICK_RANK),
    )
    return _rows(turn, signed, rows, again)


def _places_then(
    turn: Turn,
    signed: Signed,
    query: np.ndarray,
    names: np.ndarray,
    at: np.ndarray,
    fixes: LastFixes,
) -> dict[str, np.ndarray]:
    """Where the objects of rows were at instants, as `change_rows` takes it; groups are nowhere.

    Args:
        turn: the run.
        signed: has the instants.
        query: int64[n], the query of each row.
        names: int64[n], its object, as a number of a partner.
        at: int64[n], the place of the instant.
        fixes: the last ones before the run.
    """
    partners, then = turn.numbering.partners, nowhere(len(query))
    ids = partners.ids.take(pa.array(names))
    objects = turn.objects.find(partners.hashes[names], ids)
    mine = np.flatnonzero((objects >= 0) & ~turn.known.grouped[query])
    position, tick = signed.position[at[mine]], signed.tick[at[mine]]
    reading = last_known(turn.events, objects[mine], position, tick)
    # Whom the run meets first, and later than then, was nowhere.
    known = reading < len(turn.events) + len(fixes)
    shown, place = readings_of(reading[known], turn, fixes)
    for name, values in places_of(shown, place).items():
        then[name][mine[known]] = values
    return then


def _pairs(
    row: np.ndarray, sign: np.ndarray, rows: OuterRows
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows end and begin by the same row with a sign (bool[n]), and which of these are as they were (bool[n])."""
    order = np.lexsort((sign, row))
    first = is_first(row[order])
    follows = np.flatnonzero(~first)
    minus, plus = order[follows - 1], order[follows]
    is_update, is_same = np.zeros(len(row), bool), np.zeros(len(row), bool)
    is_update[minus] = is_update[plus] = True
    fields = rows.fields.fill_null("").to_numpy(zero_copy_only=False)
    value = rows.value.view(np.int64)
    same = (value[minus] == value[plus]) & (fields[minus] == fields[plus])
    is_same[minus] = is_same[plus] = same
    return is_update, is_same


def _causes(
    below: np.ndarray, weight: np.ndarray, sign: np.ndarray, is_update: np.ndarray
) -> np.ndarray:
    """Why rows come and go: as below where they came and went there, else because of what is asked of them.

    Args:
        below: int64[n], the cause of the row with a sign.
        weight: int64[n], its sign.
        sign: int64[n], that of the change.
        is_update: bool[n], where one goes and another comes in its place.
    """
    corrected = np.isin(below, [CAUSE["value"], CAUSE["inside"]])
    by_itself = (weight == sign) & ~corrected
    asked = np.where(sign < 0, CAUSE["leave"], CAUSE["enter"])
    return np.where(is_update, CAUSE["value"], np.where(by_itself, below, asked))
