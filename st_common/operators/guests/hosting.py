"""What a shard asks of others before it steps a part of the log: a state and packets with all its guests in them.

before           who was a guest in the part before, and the objects that own queries go with
1 by name        their fixes in the part                  ->  where own queries come to be
2 by place       who is there, or comes there             ->  new guests: their last fixes, and fixes of the part
let go           guests that are in no answer and nowhere near, once they are many
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from st_common.controls.reading import chosen
from st_common.controls.rows import Registration
from st_common.operators.arrays.keys import is_in, unique
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import Told, with_objects
from st_common.operators.guests.cells import Cells, cells_around
from st_common.operators.guests.nearby import Nearby, joined, nearby_of
from st_common.operators.guests.part_fixes import PartFixes, packets_with
from st_common.operators.guests.part_fixes import joined as joined_fixes_of_part
from st_common.operators.runtime.compiling import owners
from st_common.operators.runtime.reshape import named_at_ticks
from st_common.operators.runtime.retire import without_objects
from st_common.operators.state.intern import shards_of, with_those_that_share
from st_common.operators.state.registered import Queries
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.query.control import plan_of
from st_common.query.lengths import in_coordinates
from st_common.runs import ranges

LEAST = 100
"""So many guests may be there for nothing; and a quarter of all objects of a shard."""
_SHARE = 4

Hosted = tuple[State, list[Packet]]


class Others(Protocol):
    """The other shards, as one asks them about a part of the log."""

    def named(self, hashes: np.ndarray, new: np.ndarray) -> Sequence[Told]:
        """The fixes of objects, and of new ones what is known before the part; see `Own.named`."""

    def nearby(self, cells: Cells, known: np.ndarray) -> Sequence[Told]:
        """Who is in some cells, or comes there, but for those that are known; see `Own.nearby`."""


def hosted(
    state: State,
    packets: Sequence[Packet],
    settings: Settings,
    others: Others,
    *,
    is_first: bool,
    least: int = LEAST,
) -> Hosted:
    """A state with the guests of a shard, and packets with their fixes: what is stepped then tells what is so.

    Args:
        state: the state before a part of the log, with those that were guests until now.
        packets: the shard's own of that part, in log order.
        settings: which shard this is.
        others: answer for the other shards.
        is_first: queries were just dealt out: who is near them is not known yet.
        least: so many guests may be there for nothing.
    """
    if not (is_first or _may_come(packets)):
        return state, list(packets)
    nearby = _asked(state.queries, packets, settings)
    guests = _guests(state, settings)
    if not len(nearby) and not len(guests):
        return state, list(packets)
    focals = nearby.focals.hashes(settings.id_key)
    asked, new = unique(focals), _new(focals, guests, settings)
    known = np.union1d(guests, new)
    named = others.named(known, new)
    state = with_objects(state, [one.state for one in named])
    fixes = joined_fixes_of_part([one.fixes for one in named])
    own = PartFixes.of(packets)
    cells = _cells(nearby, state, joined_fixes_of_part([own, fixes]), settings)
    came = others.nearby(cells, known)
    state, fixes = _without_spare(state, fixes, cells, asked, settings, least)
    every = joined_fixes_of_part([fixes, *(one.fixes for one in came)])
    state = with_objects(state, [one.state for one in came])
    return state, packets_with(packets, every)


def _may_come(packets: Sequence[Packet]) -> bool:
    """Whether anybody may come near in a part: somebody moves in it, or queries come."""
    return any(
        any(chosen(packet.controls, Registration)) if packet.controls else packet.rows
        for packet in packets
    )


def _asked(queries: Queries, packets: Sequence[Packet], settings: Settings) -> Nearby:
    """What own queries look for, and those that are registered in the part."""
    key = (Nearby, settings.shard, settings.shards)
    if key not in queries.derived:
        is_own = owners(queries, settings.shards) == settings.shard
        own = (queries[number] for number in np.flatnonzero(is_own))
        queries.derived[key] = nearby_of(one.plan for one in own if one.live)
    known: Nearby = queries.derived[key]
    rows = [row for p in packets for _, row in chosen(p.controls, Registration)]
    if not rows:
        return known
    # Whose they are is not known to a row that replaces a query: so all look around, in this one part.
    plans = (in_coordinates(plan_of(row, 0), settings.unit_m) for row in rows)
    return joined([known, nearby_of(plans)])


def _is_foreign(hashes: np.ndarray, settings: Settings) -> np.ndarray:
    """Which objects are of other shards; bool."""
    return np.asarray(shards_of(hashes, settings.shards) != settings.shard)


def _guests(state: State, settings: Settings) -> np.ndarray:
    """The hashes of objects of other shards that a state knows; uint64, ascending."""
    hashes = state.objects.hashes
    return unique(hashes[_is_foreign(hashes, settings)])


def _new(focals: np.ndarray, guests: np.ndarray, settings: Settings) -> np.ndarray:
    """The hashes of focal objects of other shards of which nothing is known; uint64, ascending.

    Objects that share a hash come and go together: who asks for one by name gets them all. So none is new whose hash a
    guest has.
    """
    is_new = _is_foreign(focals, settings) & ~is_in(focals, guests)
    return unique(focals[is_new])


def _cells(nearby: Nearby, state: State, fixes: PartFixes, settings: Settings) -> Cells:
    """Where own queries look in a part: around all places of the objects that they go with."""
    hashes = nearby.focals.hashes(settings.id_key)
    order = np.argsort(hashes, kind="stable")
    ascending = hashes[order]
    held = state.held
    who = [
        state.objects.hashes,
        state.objects.hashes[held.object],
        fixes.hash_of_each,
    ]
    places = np.concatenate(who)
    x = np.concatenate([state.fixes.x, held.x, fixes.x])
    y = np.concatenate([state.fixes.y, held.y, fixes.y])
    start = np.searchsorted(ascending, places, side="left")
    count = np.searchsorted(ascending, places, side="right") - start
    at = np.repeat(np.arange(len(places)), count)
    row = order[ranges(start, count)]
    return cells_around(x[at], y[at], nearby.extent.at(row), space=settings.space)


def _without_spare(
    state: State,
    fixes: PartFixes,
    cells: Cells,
    asked: np.ndarray,
    settings: Settings,
    least: int,
) -> tuple[State, PartFixes]:
    """A state and fixes without guests that are there for nothing, if they are many."""
    hashes = state.objects.hashes
    came = unique(fixes.hash_of_each[cells.hold(fixes.x, fixes.y)])
    foreign = np.flatnonzero(_is_foreign(hashes, settings))
    spare = np.zeros(len(hashes), bool)
    spare[foreign] = ~is_in(hashes[foreign], asked)
    spare &= ~cells.hold(state.fixes.x, state.fixes.y) & ~is_in(hashes, came)
    spare &= ~_named(state)
    spare[foreign] = ~with_those_that_share(~spare[foreign], hashes[foreign])
    if np.count_nonzero(spare) <= max(least, len(hashes) // _SHARE if least else 0):
        return state, fixes
    gone = np.sort(hashes[spare])
    kept = np.flatnonzero(~is_in(fixes.hash_of_each, gone))
    return without_objects(state, spare, settings), fixes.at(kept)


def _named(state: State) -> np.ndarray:
    """Which objects answers and operators name, or wait for the clock; bool[objects].

    What happened in the open tick is of no interest: who comes near in that tick is told of again.
    """
    named = named_at_ticks(state)
    named[state.held.object] = True
    return named
