"""Cases through shards that know guests, in this process: what each asks of the others, the others answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pyarrow as pa

from st_common.engine.cross_shard import asked_by, changes_kind
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import Own, Told
from st_common.operators.guests.cells import Cells
from st_common.operators.guests.dealing import dealt_by_place
from st_common.operators.guests.hosting import hosted
from st_common.operators.guests.part_fixes import PartFixes
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.runtime.retire import retired
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from tests.kit.laws import batched, packets_of, settings_of
from tests.kit.strategies import Case, Segmentation


@dataclass(frozen=True)
class Answering:
    """The other shards of one, which write what they say into bytes and read it back."""

    owns: Sequence[Own]

    def named(self, hashes: np.ndarray, new: np.ndarray) -> list[Told]:
        """See `Own.named`."""
        return [_through_bytes(own.named(hashes, new)) for own in self.owns]

    def nearby(self, cells: Cells, known: np.ndarray) -> list[Told]:
        """See `Own.nearby`."""
        return [_through_bytes(own.nearby(cells, known)) for own in self.owns]


def _through_bytes(told: Told) -> Told:
    return Told.from_blob(told.to_blob())


def following_in(packets: Sequence[Sequence[Packet]], shards: int) -> set[int]:
    """The shards that must follow all objects of packets: whose queries ask for more than who is near an object."""
    asked = [asked_by(row[0].controls, shards).anywhere for row in packets]
    return set().union(*asked)


def run_with_guests(
    case: Case, cut: Segmentation, layer_of: LayerOf, *, shards: int, rng: Random
) -> tuple[pa.Table, dict[int, int], list[State]]:
    """What shards with guests tell of a case, the order of its rows, and their states.

    Now and then all queries are dealt anew, and shards forget what nothing names.
    """
    every, order = packets_of(case, cut, shards)
    following = following_in(every, shards)
    own = packets_of(case, cut, shards, following)[0]
    states, told = [State()] * shards, list[pa.Table]()
    for batch in batched(own, cut.batches):
        is_dealt = True
        if any(changes_kind(row[0].controls) for row in batch):
            states = _dealt_anew(states, following, by_place=False)
        elif rng.random() < 0.3 and len(following) < shards:
            states = _dealt_anew(states, following, by_place=True)
        else:
            is_dealt = not told
        made = [[row[shard] for row in batch] for shard in range(shards)]
        done = _stepped(case, states, made, layer_of, following, rng, is_dealt=is_dealt)
        states = [state for state, _ in done]
        told.append(settled([changes for _, changes in done]))
    return pa.concat_tables(told), order, states


def _dealt_anew(
    states: Sequence[State], following: set[int], *, by_place: bool
) -> list[State]:
    shards = len(states)
    whole = joined(states, following=following, guests=True)
    if by_place:
        whole = dealt_by_place(whole, set(range(shards)) - following)
    return split(whole, shards=shards, following=following, guests=True)


def _stepped(
    case: Case,
    states: Sequence[State],
    made: Sequence[Sequence[Packet]],
    layer_of: LayerOf,
    following: set[int],
    rng: Random,
    *,
    is_dealt: bool,
) -> list[tuple[State, pa.Table]]:
    """The states of shards after a part of the log, and what each tells."""
    shards, out = len(states), []
    fixes = [PartFixes.of(packets) for packets in made]
    owns = [Own(states[n], fixes[n], n, shards) for n in range(shards)]
    for shard in range(shards):
        settings = replace(
            settings_of(case.rules, shard=shard, shards=shards), hosted=True
        )
        state, packets = states[shard], list(made[shard])
        if shard not in following:
            others = Answering([own for own in owns if own.shard != shard])
            state, packets = hosted(
                state, packets, settings, others, is_first=is_dealt, least=0
            )
        done = step(state, packets, settings, layer_of)
        forgets = rng.random() < 0.2
        kept = retired(done.state, settings, least=0) if forgets else done.state
        out.append((kept, done.changes))
    return out
