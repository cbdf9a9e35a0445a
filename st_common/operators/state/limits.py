"""By which limits fixes are filtered, and from which place in the log on (SPEC X11)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from st_common.operators.state.fixes import NEVER

_FOR_EVER = np.iinfo(np.int64).max


ACCEPTED, ACCURACY, SPEED, DISTANCE, WITHIN_ACCURACY = range(5)
REASONS = ("accepted", "accuracy", "speed", "distance", "within_accuracy")
"""What is said of a fix, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What of a stream's settings filters fixes (see `settings.PositionFilter`); None is off.

    Attributes:
        accuracy: the attribute that says how good a fix is.
        accuracy_unit_m: how many metres one of its unit is.
        max_accuracy_m: a fix that is known worse is filtered.
        beyond_accuracy: a fix must be farther from the last accepted one than the accuracies of both together.
        min_distance_m: it must be this far from the last accepted one.
        max_speed_mps: it must not be farther from it than this speed leads in the time between.
        accept_after_us: for how long the last accepted fix is a measure for others; after that the next is accepted.
    """

    accuracy: str | None = None
    accuracy_unit_m: float = 1.0
    max_accuracy_m: float | None = None
    beyond_accuracy: bool = False
    min_distance_m: float | None = None
    max_speed_mps: float | None = None
    accept_after_us: int | None = None


LimitSpans = tuple[tuple[int, Limits | None], ...]
"""From which place in the log on which limits hold, rising; before the first there are none.

A fix is judged by the limits of its own row, however late it takes effect. They grow when somebody changes settings:
by some numbers each time, so none is ever forgotten.
"""


def spans_after(spans: LimitSpans, position: int, limits: Limits | None) -> LimitSpans:
    """The spans, when rows from a position on have these limits.

    Args:
        spans: those so far.
        position: a place in the log, not before the last of the spans.
        limits: None: none are filtered from there on.

    Returns:
        The same tuple where these limits hold there already.
    """
    before = spans[-1][1] if spans else None
    return spans if limits == before else (*spans, (position, limits))


def spans_to_json(spans: LimitSpans) -> list[Any]:
    """The spans as JSON values: pairs of a place in the log and the limits from there on, null for none."""
    return [[at, None if limits is None else asdict(limits)] for at, limits in spans]


def spans_from_json(values: Sequence[Any]) -> LimitSpans:
    """The spans that `spans_to_json` gave."""
    return tuple((int(at), limits_from_json(limits)) for at, limits in values)


def limits_from_json(value: dict[str, Any] | None) -> Limits | None:
    """The limits that `asdict` gave; None for none."""
    return None if value is None else Limits(**value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitColumns:
    """Limits of several spans as columns of one length; what is off is a value that filters nothing."""

    of: tuple[Limits, ...]
    max_accuracy_m: np.ndarray
    beyond_accuracy: np.ndarray
    min_distance_m: np.ndarray
    max_speed_mps: np.ndarray
    accept_after_us: np.ndarray


def limit_columns(spans: LimitSpans) -> LimitColumns:
    """The limits of each span as columns; in front of them stand those from before the first, which filter nothing.

    Example:
        one span with `max_speed_mps = 50`:  max_speed_mps [inf, 50], min_distance_m [0, 0]
    """
    limits_of_spans = (Limits(), *(limits or Limits() for _, limits in spans))

    def column(name: str, off: float) -> np.ndarray:
        values = [getattr(one, name) for one in limits_of_spans]
        return np.array([off if value is None else value for value in values])

    return LimitColumns(
        of=limits_of_spans,
        max_accuracy_m=column("max_accuracy_m", np.inf),
        beyond_accuracy=column("beyond_accuracy", off=0),
        min_distance_m=column("min_distance_m", 0.0),
        max_speed_mps=column("max_speed_mps", np.inf),
        accept_after_us=column("accept_after_us", _FOR_EVER),
    )


def span_of(spans: LimitSpans, position: np.ndarray) -> np.ndarray:
    """The place in `limit_columns` of the limits of each row; int64[n].

    Args:
        spans: as a state has them.
        position: int64[n], places in the log.

    Example:
        one span from 100 on:  positions 99, 100, 500 give 0, 1, 1
    """
    starts = np.array([NEVER, *(at for at, _ in spans)], np.int64)
    return np.searchsorted(starts, position, side="right") - 1


def may_filter(spans: LimitSpans, used: np.ndarray) -> bool:
    """Whether any of some spans filters anything; so that a stream without limits pays nothing.

    Args:
        spans: as a state has them.
        used: int64, places in `limit_columns`.
    """
    has_limits = np.array([False, *(limits is not None for _, limits in spans)])
    return bool(has_limits[used].any())
