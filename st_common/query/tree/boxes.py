"""BBoxDB's operators, which judge a box in the place of each fix: transformations, and the comparison with a box."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from st_common.query.comparing import Compare, Transform
from st_common.query.tree.node import Above


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed(Above):
    """Fixes with a box in place of their point, which is enlarged and filtered."""

    at: ClassVar[str] = "using"
    parts: ClassVar[Mapping[str, str]] = {"transforms": "transforms"}
    of_fixes: ClassVar[bool] = True
    only_selects: ClassVar[bool] = True
    by_boxes: ClassVar[bool] = True
    transforms: tuple[Transform, ...]

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "USING"

    @property
    def has_extent(self) -> bool:
        """See `Node`."""
        return any(step.enlarges for step in self.transforms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Above):
    """Fixes whose box meets another one, or does not meet it."""

    at: ClassVar[str] = "compare"
    parts: ClassVar[Mapping[str, str]] = {"compare": "compare"}
    of_fixes: ClassVar[bool] = True
    only_selects: ClassVar[bool] = True
    by_boxes: ClassVar[bool] = True
    compare: Compare

    @property
    def noun(self) -> str:
        """See `Node`."""
        return "COMPARE WITH"
