"""Which fixes change nothing, as a stream's table `position_filter` says (SPEC X11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from st_common.errors import ConfigError
from st_common.stream_keys import FILTER_KEYS
from st_common.toml_values import checked


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionFilter:
    """Which fixes are stored and change nothing (SPEC X11): metres, metres per second, seconds; None means off.

    `accuracy` is the attribute that says how good a fix is, with a unit of length. `beyond_accuracy`: a fix must be
    farther from the last accepted one than the accuracies of both together. `accept_after_s` is for how long the last
    accepted fix is a measure for others.
    """

    accuracy: str | None = None
    max_accuracy_m: float | None = None
    beyond_accuracy: bool = False
    min_distance_m: float | None = None
    max_speed_mps: float | None = None
    accept_after_s: float | None = None


def position_filter_of(table: Mapping[str, Any], place: str) -> PositionFilter:
    """The filter of a table of settings, which has at least one limit.

    Args:
        table: its keys and values.
        place: where it stands, for errors.

    Raises:
        ConfigError: a key is unknown or wrong, there is no limit, or `accuracy` is missing.
    """
    place = f"{place} position_filter:"
    position_filter = PositionFilter(
        **checked(table, FILTER_KEYS, PositionFilter, place)
    )
    if position_filter.accuracy is None and (
        position_filter.max_accuracy_m or position_filter.beyond_accuracy
    ):
        raise ConfigError(
            f"{place} accuracy is missing",
            hint="name the attribute that says how good a fix is",
        )
    limits = (
        position_filter.min_distance_m,
        position_filter.max_speed_mps,
        position_filter.max_accuracy_m,
    )
    if not position_filter.beyond_accuracy and limits == (None, None, None):
        raise ConfigError(
            f"{place} it has no limit",
            hint="set max_speed_mps, min_distance_m, max_accuracy_m or beyond_accuracy",
        )
    return position_filter
