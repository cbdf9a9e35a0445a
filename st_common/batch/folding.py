"""An interval of fixes and statements folded into a state: in this process, or by tasks (see `sharded`)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from st_common.batch.ordered import Ordered, Slice, blocks_of
from st_common.engine.local import layers_of
from st_common.engine.packets import step_settings
from st_common.engine.statements import Reached, Statement
from st_common.operators.events.packet import Packet
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.stages import step
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.part import Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """What is folded.

    Attributes:
        ordered: reads the fixes.
        placed: the statements of the interval, in their order.
        reached: how far statements were read before it.
        since_us: its beginning.
        until_us: the time to stop before.
    """

    ordered: Ordered
    placed: Sequence[Statement]
    reached: Reached
    since_us: int
    until_us: int

    def slices(self) -> list[Slice]:
        """Its slices of time, one at least."""
        return self.ordered.slices(
            self.placed,
            self.reached,
            since_us=self.since_us,
            until_us=self.until_us,
        )

    def blocks(self, *, at_least: int = 1) -> list[Sequence[Slice]]:
        """Its slices, in blocks that are read at once.

        Args:
            at_least: how many blocks there shall be, if there are slices for them.
        """
        return blocks_of(self.slices(), at_least=at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What an interval comes to.

    Attributes:
        state: the one that has seen it all.
        changes: tables of `SHARD_SCHEMA`, as `settled` takes them.
        failures: queries that cannot be judged.
        counters: what the step counted; None where shards folded it, for several of them see the same fix.
    """

    state: State
    changes: tuple[pa.Table, ...] = ()
    failures: tuple[Failure, ...] = ()
    counters: Counters | None = None


class Fold(Protocol):
    """Folds an interval into the state before it. With however many shards, the changes are the same."""

    def __call__(self, interval: Interval, state: State) -> Folded:
        """The state behind the interval, with the changes on the way.

        Raises:
            LogError: a control row that this version does not know, or a segment that is damaged.
        """


def fold_here(interval: Interval, state: State) -> Folded:
    """Folds in this process, one slice of time after the other; see `Fold`."""
    ordered = interval.ordered
    settings = step_settings(ordered.stream)
    layer_of = layers_of(ordered.home, ordered.stream)
    return fold_packets(
        _packets(interval, state.next_segment), state, settings, layer_of
    )


def _packets(interval: Interval, segment: int) -> Iterator[list[Packet]]:
    """The packets of each slice, numbered from a segment on."""
    for block in interval.blocks():
        for packets in interval.ordered.packets_of(block, segment):
            segment += len(packets)
            yield [shards[0] for shards in packets]


def fold_packets(
    runs: Iterable[Sequence[Packet]],
    state: State,
    settings: Settings,
    layer_of: LayerOf,
) -> Folded:
    """The state behind runs of packets, with the changes on the way.

    Args:
        runs: packets without a gap, each run in one step.
        state: the one before them.
        settings: which shard this is, among others.
        layer_of: gives the layers.
    """
    changes: list[pa.Table] = []
    failures: list[Failure] = []
    counters = Counters()
    for packets in runs:
        done = step(state, packets, settings, layer_of)
        state = done.state
        changes.append(done.changes)
        failures += done.failures
        counters += done.counters
    return Folded(
        state=state,
        changes=tuple(changes),
        failures=tuple(failures),
        counters=counters,
    )
