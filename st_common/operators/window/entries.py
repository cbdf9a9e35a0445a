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

    `target` and `object` say whose entry it is; `ts` is its event time, `position` its row of the log, `tick` the tick
    from which it counts. `group` is the number of the group's text among the partners, -1 without groups; `value` the
    aggregate's argument, NaN for null and 1 where only whether there is one matters; `text` then is the number of its
    text among the partners where different ones are counted, else -1.
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
