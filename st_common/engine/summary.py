"""What a run says when it ends."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Counts of one run of one stream; `position` is the place after the last committed row.

    `nulled` says of each attribute in how many fixes its text was of another type, so that it is null there.
    `filtered` says by reason how many fixes were stored and changed nothing (SPEC X11).
    `operators` are the tuples that went through each operator, by name (SPEC G10; see `operators.evaluate.Counters`).
    `caches` are what the caches of moving queries cost, by kind (SPEC G6; see `operators.cache_counts.CacheCounts`).
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
    filtered: dict[str, int]
    caches: dict[str, dict[str, float]]

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON values."""
        return dataclasses.asdict(self)
