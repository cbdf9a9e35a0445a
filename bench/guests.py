"""P9 by shards that know guests: as many moving squares as objects, the last round of each of some numbers of shards.

usage: python -m bench.guests [--queries N] [--shards 1,4,16,64]

Squares are dealt to shards by the places of their objects. The round before the last has all guests come, and is not
timed; then each shard asks the others, and steps, alone in this process: CPU time, what it answers others in it. What
all tell together must be what one shard tells, else it fails with exit code 3.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from bench.scaling import ROOT, filled_with_squares, hash_of, packets_by_shard
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.local import layers_of
from st_common.engine.packets import step_settings
from st_common.operators.events.packet import Packet
from st_common.operators.guests.answering import Own, Told
from st_common.operators.guests.cells import Cells
from st_common.operators.guests.dealing import dealt_by_place
from st_common.operators.guests.hosting import hosted
from st_common.operators.guests.part_fixes import PartFixes
from st_common.operators.runtime.reshape import split
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled

Value = TypeVar("Value")
_OF_A_ROUND = 3
"""Two segments of fixes, and the row of the clock."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the shards of one number took in a round (seconds of CPU), and what they hold at most (bytes)."""

    shards: int
    slowest_s: float
    mean_s: float
    hosting_s: float
    answering_s: float
    most_state_bytes: int
    most_objects: int
    bytes_told: int
    changes: int


@dataclass
class Took:
    """Seconds of CPU by shard: of steps, of asking, of answering; and the bytes of all answers."""

    steps: list[float]
    hosting: list[float]
    answering: list[float]
    told_bytes: int = 0

    @staticmethod
    def of(shards: int) -> "Took":
        """Nothing yet."""
        none = [0.0] * shards
        return Took(none.copy(), none.copy(), none.copy())


def timed(work: Callable[[], Value]) -> tuple[Value, float]:
    """What a function gives, and its seconds of CPU."""
    started_s = time.process_time()
    value = work()
    return value, time.process_time() - started_s


@dataclass
class Others:
    """The other shards of one, whose answers are timed as theirs."""

    owns: Sequence[Own]
    took: Took
    answered_s: float = field(default=0.0)

    def named(self, hashes: np.ndarray, new: np.ndarray) -> list[Told]:
        """See `hosting.Others`."""
        return self._asked(lambda own: own.named(hashes, new).to_blob())

    def nearby(self, cells: Cells, known: np.ndarray) -> list[Told]:
        """See `hosting.Others`."""
        return self._asked(lambda own: own.nearby(cells, known).to_blob())

    def _asked(self, answer: Callable[[Own], bytes]) -> list[Told]:
        told = []
        for own in self.owns:
            blob, seconds = timed(partial(answer, own))
            self.took.answering[own.shard] += seconds
            self.took.told_bytes += len(blob)
            self.answered_s += seconds
            told.append(Told.from_blob(blob))
        return told


def stepped(
    home: Home,
    stream: StreamSettings,
    states: Sequence[State],
    packets: Sequence[Sequence[Packet]],
) -> tuple[list[State], list[pa.Table], Took]:
    """The states of shards behind a part of the log, what each tells, and what that took."""
    shards, took = len(states), Took.of(len(states))
    owns = [Own(states[n], PartFixes.of(packets[n]), n, shards) for n in range(shards)]
    after, told = [], []
    for shard in range(shards):
        settings = _settings(stream, shard, shards)
        others = Others([own for own in owns if own.shard != shard], took)
        asking = partial(hosted, states[shard], packets[shard], settings, others)
        (state, read), seconds = timed(partial(asking, is_first=False))
        took.hosting[shard] += seconds - others.answered_s
        taking = partial(step, state, read, settings, layers_of(home, stream))
        done, seconds = timed(taking)
        took.steps[shard] += seconds
        after.append(done.state)
        told.append(done.changes)
    return after, told, took


def _settings(stream: StreamSettings, shard: int, shards: int) -> Settings:
    return replace(step_settings(stream, shard=shard, shards=shards), hosted=shards > 1)


def measured(
    home: Home,
    stream: StreamSettings,
    whole: State,
    packets: Sequence[Sequence[Packet]],
) -> tuple[Measured, str]:
    """What so many shards take for the last round, and the hash of what they tell of it."""
    shards = len(packets)
    dealt = dealt_by_place(whole.of_key(stream.id_key), range(shards))
    states = split(dealt, shards=shards, following=(), guests=True)
    for part in (slice(-2 * _OF_A_ROUND, -_OF_A_ROUND), slice(-_OF_A_ROUND, None)):
        of_part = [of[part] for of in packets]
        states, told, took = stepped(home, stream, states, of_part)
    whole_s = [sum(one) for one in zip(took.steps, took.hosting, took.answering)]  # noqa: B905
    changes = settled(told)
    figures = Measured(
        shards=shards,
        slowest_s=round(max(whole_s), 4),
        mean_s=round(sum(whole_s) / shards, 4),
        hosting_s=round(max(took.hosting), 4),
        answering_s=round(max(took.answering), 4),
        most_state_bytes=max(len(one.to_blob(queries=False)) for one in states),
        most_objects=max(len(one.objects) for one in states),
        bytes_told=took.told_bytes,
        changes=len(changes),
    )
    return figures, hash_of(changes)


def main() -> None:
    """Measures each number of shards, and prints the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--shards", default="1,4,16,64")
    parser.add_argument("--work", type=Path, default=ROOT / "bench" / "work")
    args = parser.parse_args()
    home, log, stream = filled_with_squares(args)
    (alone,) = packets_by_shard(log, stream, 1, 0)
    settings = _settings(stream, 0, 1)
    before = alone[: -2 * _OF_A_ROUND]
    whole = step(State(), before, settings, layers_of(home, stream)).state
    found = [
        measured(home, stream, whole, packets_by_shard(log, stream, int(n), 0))
        for n in args.shards.split(",")
    ]
    print(
        json.dumps(
            {"queries": args.queries, "by_shards": [asdict(one) for one, _ in found]}
        )
    )
    if len({told for _, told in found}) > 1:
        raise SystemExit(3)


if __name__ == "__main__":
    main()
