"""What one run of log rows brings, as all parts of EVALUATE need it."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.events.agenda import Final
from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.layer import LayerOf
from st_common.operators.state.intern import Interner, shards_of
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Queries
from st_common.operators.state.settings import Settings
from st_common.operators.turn.changes import Names
from st_common.operators.turn.compiled import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The events of a run with their readings, the clock, all known objects, and the queries that are live.

    Attributes:
        events: what happens, sorted by object and effect.
        readings: the reading of its object after each event.
        clock: the clock over the run.
        objects: the ids of all objects, those included that the run meets first.
        queries: all queries of the stream, dropped ones too; a query's number is its place.
        known: the live ones, compiled.
        layer_of: gives a layer by name.
        numbering: the numbers of partners and targets; it grows while the run is judged.
        is_own: bool[objects], which are this shard's; None: all of them.
        final: an end mark, None for every other run.
    """

    events: Events
    readings: Readings
    clock: Clock
    objects: Interner
    queries: Queries
    known: Compiled
    settings: Settings
    layer_of: LayerOf
    numbering: Numbering
    is_own: np.ndarray | None = None
    final: Final | None = None

    @property
    def names(self) -> Names:
        """By which names the changes of this run are told."""
        return Names(
            queries=self.queries,
            targets=self.numbering.targets,
            objects=self.objects,
            partners=self.numbering.partners,
        )

    def own(self, objects: np.ndarray) -> np.ndarray:
        """Which of some objects (int64[n]) are this shard's; bool[n]."""
        if self.is_own is None:
            return np.ones(len(objects), bool)
        return np.asarray(self.is_own[objects])

    def count_own(self, objects: np.ndarray) -> int:
        """How many of some objects (int64[n]) are this shard's."""
        if self.is_own is None:
            return len(objects)
        return int(np.count_nonzero(self.is_own[objects]))


def own_objects(objects: Interner, settings: Settings) -> np.ndarray | None:
    """Which objects this shard owns; bool[objects], None for all, where there is one shard.

    An object belongs to the shard `hash % shards`, in every process and for ever.

    Args:
        objects: all objects that are known, by number.
        settings: how many shards there are, and which this is.
    """
    if settings.shards == 1:
        return None
    own: np.ndarray = shards_of(objects.hashes, settings.shards) == settings.shard
    return own
