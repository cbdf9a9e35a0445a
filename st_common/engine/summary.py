"""What a run says when it ends."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The counts of one run of one stream.

    Attributes:
        stream: the name of the stream.
        engine: `local` or `spark`.
        seconds: how long the run took.
        segments: segments of the log that were read.
        fixes: records that are fixes.
        rejects: records that are none.
        late: fixes that came too late to take effect.
        double: fixes with the event time of an earlier fix of their object, which change nothing.
        cut: fixes that a travelled frame dropped, because it had more of one object than it keeps.
        changes: rows that were told.
        position: the position after the last committed row.
        operators: tuples that went through each operator, by name (SPEC G10; see `operators.turn.part.Counters`).
        nulled: by attribute, in how many fixes its text was of another type, so that it is null there.
        filtered_out: by clause of the stream's `where`, how many records it stopped.
        filtered: by reason, how many fixes were stored and changed nothing (SPEC X11).
        caches: by kind of moving query, what caches cost (SPEC G6; see `operators.skeleton.cache_counts`).
    """

    stream: str
    engine: str
    seconds: float
    segments: int
    fixes: int
    rejects: int
    late: int
    double: int
    cut: int
    changes: int
    position: int
    operators: dict[str, int]
    nulled: dict[str, int]
    filtered_out: dict[str, int]
    filtered: dict[str, int]
    caches: dict[str, dict[str, float]]

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return dataclasses.asdict(self)
