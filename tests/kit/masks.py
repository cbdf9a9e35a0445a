"""A selection that is laid out: which of a few objects satisfy which of a few rules."""

import numpy as np
import numpy.typing as npt

from st_common.operators.skeleton.selection import Bools, Ints, Lists, no_lists


class Masks:
    """bool[rules, n]: row 0 is all true. Rules are `listed`, or their sizes are known alone."""

    def __init__(self, rows: npt.ArrayLike, *, listed: bool = True) -> None:
        self.rows, self._listed = np.asarray(rows, np.bool_), listed

    def holds(self, rule: Ints, obj: Ints) -> Bools:
        """For each pair whether the object satisfies the rule."""
        return self.rows[rule, obj]

    def lists(self, objects: Ints) -> Lists:
        """For each rule but 0 those of some objects that satisfy it."""
        if not self._listed:
            return no_lists(len(self.rows), objects)
        return self.exact(np.arange(1, len(self.rows)), objects)

    def exact(self, rules: Ints, objects: Ints) -> Lists:
        """The same, whether rules are listed or not."""
        rules = np.arange(1, len(self.rows))
        if not len(rules):
            return no_lists(len(self.rows), objects)
        row, place = np.nonzero(self.rows[1:, objects])
        count = np.bincount(row, minlength=len(rules))
        return Lists(
            of_rule=np.arange(len(self.rows)) - 1,
            size=np.concatenate([[len(objects)], count]),
            owner=rules - 1,
            start=np.cumsum(count) - count,
            count=count,
            members=objects[place],
        )
