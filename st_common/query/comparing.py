"""BBoxDB's range query q(S, alpha, tau, theta, beta): what a fix goes through before it counts (SPEC B8, B10).

alpha is the plan's `inside`, which looks at the fix itself; theta are the `transforms`, in their order; tau and beta
are `compare`.
"""

from dataclasses import dataclass
from typing import Any, Literal

from st_common.record import values_of
from st_common.regions.registry import Box

Kind = Literal["factor", "value", "metres", "key", "box", "filter"]
ENLARGEMENTS = ("factor", "value", "metres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """One step of theta, on the box of a fix, which has no extent at first.

    `factor`: an extent e becomes (1 + amount) e. `value`: extents grow by `amount` coordinates, half on each side.
    `metres`: the same by metres. `key`: only the object `text` passes. `box`: only what meets `box` passes. `filter`:
    only what the filter `name` lets through, given its custom value `text`, and `geojson_near` the `amount` of metres.
    """

    kind: Kind
    amount: float = 0.0
    text: str | None = None
    name: str | None = None
    box: Box | None = None

    @property
    def enlarges(self) -> bool:
        """Whether the box is larger behind it."""
        return self.kind in ENLARGEMENTS and self.amount > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """tau: the transformed box must meet this box, with `negative` it must not (beta). Both are closed."""

    box: Box
    negative: bool = False


def transform_to_json(transform: Transform) -> dict[str, Any]:
    """As JSON values without what is default."""
    value: dict[str, Any] = {"kind": transform.kind}
    if transform.amount:
        value["amount"] = transform.amount
    value |= {
        name: text
        for name in ("text", "name")
        if (text := getattr(transform, name)) is not None
    }
    return (
        value if transform.box is None else {**value, "box": values_of(transform.box)}
    )


def transform_from_json(value: dict[str, Any]) -> Transform:
    """What `transform_to_json` gave."""
    box = value.get("box")
    return Transform(**{**value, "box": Box(**box) if box else None})


def compare_to_json(compare: Compare) -> dict[str, Any]:
    """As JSON values without what is default."""
    value: dict[str, Any] = {"box": values_of(compare.box)}
    return {**value, "negative": True} if compare.negative else value


def compare_from_json(value: dict[str, Any]) -> Compare:
    """What `compare_to_json` gave."""
    return Compare(**{**value, "box": Box(**value["box"])})
