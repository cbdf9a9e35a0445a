"""What windows hold: fixes that qualified, each with the value and the group that count (PLACE, SPEC P5)."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from st_common.operators.state.component import Layout, Listed, Numbers, joined


def _ints() -> np.ndarray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries(Listed):
    """Fixes in windows, in the order in which they came.

    Attributes:
        target: int64, in the answer of what each fix counts.
        object: int64, whose it is.
        ts: int64, its event time in microseconds.
        position: int64, the row of the log at which it took effect.
        tick: int64, the tick from which it counts, in microseconds.
        group: int64, the number of its group's text among the partners, -1 without groups.
        text: int64, the number of a text among the partners, else -1: of the argument where different ones are counted,
            of all that counts where there are several values (see `aggregate.several`).
        value: float64, the aggregate's argument, NaN for null; 1 where only whether there is one matters.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        name="entries",
        numbers={
            "target": (Numbers.TARGETS,),
            "object": (Numbers.OBJECTS,),
            "group": (Numbers.PARTNERS,),
            "text": (Numbers.PARTNERS,),
        },
        order=("position", "object"),
        identity=("position", "object", "target", "ts"),
    )

    target: np.ndarray = field(default_factory=_ints)
    object: np.ndarray = field(default_factory=_ints)
    ts: np.ndarray = field(default_factory=_ints)
    position: np.ndarray = field(default_factory=_ints)
    tick: np.ndarray = field(default_factory=_ints)
    group: np.ndarray = field(default_factory=_ints)
    text: np.ndarray = field(default_factory=_ints)
    value: np.ndarray = field(default_factory=lambda: np.empty(0))

    def followed_by(self, more: "Entries") -> "Entries":
        """These entries, and later ones behind them."""
        return joined([self, more])
