"""What one run of log rows brings, as all parts of EVALUATE need it."""

from dataclasses import dataclass

from st_common.operators.events.agenda import Final
from st_common.operators.events.timeline import Clock, Events
from st_common.operators.expressions.readings import Readings
from st_common.operators.matching.layer import LayerOf
from st_common.operators.state.intern import Interner
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Queries
from st_common.operators.state.settings import Settings
from st_common.operators.turn.compiled import Compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The events of a run with their readings, the clock, all known objects, and the queries that are live.

    `final` is an end mark, None for every other run.
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
    final: Final | None = None
