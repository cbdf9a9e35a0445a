"""What one run of log rows brings, as all parts of EVALUATE need it."""

from dataclasses import dataclass

from st_common.operators.agenda import Final
from st_common.operators.compiled import Compiled
from st_common.operators.intern import Interner
from st_common.operators.layer import LayerOf
from st_common.operators.numbering import Numbering
from st_common.operators.readings import Readings
from st_common.operators.registered import Queries
from st_common.operators.settings import Settings
from st_common.operators.timeline import Clock, Events


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
