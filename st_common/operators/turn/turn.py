"""What one run of log rows brings, as all parts of EVALUATE need it."""

from dataclasses import dataclass

import numpy as np

from st_common.operators.events.agenda import Final
from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.layer import LayerOf
from st_common.operators.state.intern import Interner
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Queries
from st_common.operators.state.settings import Settings
from st_common.operators.turn.changes import Names
from st_common.operators.turn.compiled import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The events of a run with their readings, the clock, all known objects, and the queries that are live.

    `final` is an end mark, None for every other run. `is_own` (bool, by number) says which objects are this shard's;
    None: all of them.
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
        """Which of some objects are this shard's; a mask."""
        if self.is_own is None:
            return np.ones(len(objects), bool)
        return np.asarray(self.is_own[objects])


def own_objects(objects: Interner, settings: Settings) -> np.ndarray | None:
    """Which objects this shard owns, bool by number; None for all."""
    if settings.shards == 1:
        return None
    own: np.ndarray = objects.hashes % np.uint64(settings.shards) == settings.shard
    return own
