"""How far the event time of a stream has come, as the end of its log says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """How far a stream's event time has come, as its log says. Instants and lengths of time in us.

    Attributes:
        segment: the segment of the log that comes next.
        high_us: the largest event time that is believed; None: there is no fix yet.
        waiting: ids and event times of the last fixes that were not believed, while nobody else has spoken since.
        steps_us: how far it has moved at a time lately.
        agreed_us: when fixes came last that were made when they came; None: nobody has looked.
    """

    segment: int = 0
    high_us: int | None = None
    waiting: tuple[tuple[str, int], ...] = ()
    steps_us: tuple[int, ...] = ()
    agreed_us: int | None = None
