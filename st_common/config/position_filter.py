"""Which fixes change nothing, as a stream's table `position_filter` says (SPEC X11)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from st_common.config.keys import Place, key, of_table
from st_common.config.values import flag, number, text

_LIMIT = number(above=0.0, off=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionFilter:
    """Which fixes are stored with a reason and change nothing (SPEC X11); None means off.

    Attributes:
        accuracy: the attribute that says how good a fix is; its unit is a length: hacc = "double m".
        max_accuracy_m: known worse than that is `accuracy`.
        beyond_accuracy: true: moved less than the accuracies of both fixes together is `within_accuracy`.
        min_distance_m: moved less than that since the last accepted fix is `distance`.
        max_speed_mps: faster than that since the last accepted fix is `speed`.
        accept_after_s: so long after the last accepted fix that one is no measure any more, and only max_accuracy_m
            judges.
    """

    accuracy: str | None = field(default=None, metadata=key(text))
    max_accuracy_m: float | None = field(default=None, metadata=key(_LIMIT))
    beyond_accuracy: bool = field(default=False, metadata=key(flag))
    min_distance_m: float | None = field(default=None, metadata=key(_LIMIT))
    max_speed_mps: float | None = field(default=None, metadata=key(_LIMIT))
    accept_after_s: float | None = field(default=None, metadata=key(_LIMIT))


def position_filter_of(table: Mapping[str, Any], place: Place) -> PositionFilter:
    """The filter of a table of settings, which has at least one limit.

    Raises:
        ConfigError: a key is unknown or wrong, there is no limit, or `accuracy` is missing.
    """
    limits = of_table(PositionFilter, table, place)
    if limits.accuracy is None and (limits.max_accuracy_m or limits.beyond_accuracy):
        raise place.wrong(
            "accuracy is missing",
            hint="name the attribute that says how good a fix is",
        )
    if not limits.beyond_accuracy and (
        limits.min_distance_m is limits.max_speed_mps is limits.max_accuracy_m is None
    ):
        raise place.wrong(
            "it has no limit",
            hint="set max_speed_mps, min_distance_m, max_accuracy_m or beyond_accuracy",
        )
    return limits
