"""What stands in brackets after a stream: which of its fixes a query looks at (CQL-S section 3, SPEC W2-W5)."""

from dataclasses import dataclass
from typing import Any, Literal

from st_common.record import values_of
from st_common.regions.registry import Region, region_from_json, region_to_json

Domain = Literal["space", "time", "rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A length along an object's own way: metres travelled (`space`), seconds (`time`) or fixes (`rows`); above 0."""

    by: Domain
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliding:
    """A window of the last `range` that moves on by whole steps of `slide`; without one it moves with every fix."""

    range: Extent
    slide: Extent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The fixes of a query: of every object those in all `sliding` windows and inside all `regions`, which stand still.

    With `session_s` they are those since it paused for longer than that; then no window slides.

    With `full` a window holds nothing until its whole range lies behind the object. A fix that is less than
    `min_step_m` from the last one that counted adds no distance. Slides of time are counted from `origin_s` (seconds
    since 1970).
    """

    sliding: tuple[Sliding, ...] = ()
    regions: tuple[Region, ...] = ()
    full: bool = False
    min_step_m: float = 0.0
    origin_s: float = 0.0
    session_s: float | None = None


def frame_to_json(frame: Frame) -> dict[str, Any]:
    """The frame as JSON values without what is default."""
    value: dict[str, Any] = {}
    if frame.sliding:
        value["sliding"] = [_sliding_to_json(window) for window in frame.sliding]
    if frame.regions:
        value["regions"] = [region_to_json(region) for region in frame.regions]
    defaults = {"full": False, "min_step_m": 0.0, "origin_s": 0.0, "session_s": None}
    return value | {
        name: plain
        for name, default in defaults.items()
        if (plain := getattr(frame, name)) != default
    }


def frame_from_json(value: dict[str, Any]) -> Frame:
    """The frame that `frame_to_json` gave."""
    sliding = tuple([_sliding_from_json(window) for window in value.get("sliding", ())])
    regions = tuple([region_from_json(region) for region in value.get("regions", ())])
    return Frame(**{**value, "sliding": sliding, "regions": regions})


def _sliding_to_json(window: Sliding) -> dict[str, Any]:
    value = {"range": values_of(window.range)}
    return (
        value if window.slide is None else {**value, "slide": values_of(window.slide)}
    )


def _sliding_from_json(value: dict[str, Any]) -> Sliding:
    slide = value.get("slide")
    extents = {"range": Extent(**value["range"])}
    return Sliding(**{**value, **extents, "slide": Extent(**slide) if slide else None})
