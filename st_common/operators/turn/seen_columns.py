"""The columns that simple conditions name, of the last fixes at the ticks of a run: read once for each fix (X13)."""

from dataclasses import replace

import numpy as np

from st_common.geometry.space import Space
from st_common.operators.expressions.conditions import Conditions
from st_common.operators.expressions.seen import Seen, fits_of, seen_of
from st_common.operators.expressions.truth import tested_of
from st_common.operators.state.intern import Interner
from st_common.operators.turn.course import Course
from st_common.operators.turn.present import Present


class SeenColumns:
    """The columns that simple conditions name, by the places of fixes in a run; filled for those that are asked about.

    Args:
        conditions: what names the columns.
        fixes: the last fixes, at one tick or over several of one run.
        objects: the ids of objects.
        space: by which distances and directions are measured.

    Attributes:
        tested: how each condition is tested: simple, with a shape, or by the database.
    """

    def __init__(
        self,
        conditions: Conditions,
        fixes: Present | Course,
        objects: Interner,
        *,
        space: Space,
    ) -> None:
        values, nobody = fixes.values, np.empty(0, np.int64)
        # By the attributes of all fixes of the run: how a condition is tested must not depend on who is asked first.
        whole = replace(fixes.readings(nobody), attributes=values.attributes)
        fits = fits_of(conditions, whole, objects.ids, space=space)
        self.tested = tested_of(conditions, fits, whole, space=space)
        self._conditions, self._objects, self._space = (
            conditions,
            objects,
            space,
        )
        shape = (len(conditions.columns), values.places + 1)
        self._seen = Seen(
            numbers=np.full(shape, np.nan),
            texts=np.full(shape, -1, np.int64),
            fits=fits,
        )
        self._known = np.zeros(values.places + 1, bool)
        self._known[-1] = True

    def at(
        self, fixes: Present | Course, objects: np.ndarray
    ) -> tuple[Seen, np.ndarray]:
        """The columns, filled for the last fixes of some objects.

        Args:
            fixes: the last fixes, as they are at the tick.
            objects: int64[n].

        Returns:
            Columns by place of all fixes of the run (the last place is for none), and int64[n], the places of these
            objects.
        """
        places = fixes.place[objects]
        new = np.flatnonzero(~self._known[places])
        if len(new):
            # By a mask: each object once, and in order.
            is_new = np.zeros(len(fixes), bool)
            is_new[objects[new]] = True
            who = np.flatnonzero(is_new)
            wanted, readings = fixes.place[who], fixes.readings(who)
            seen = seen_of(
                self._conditions,
                readings,
                self._objects.ids,
                space=self._space,
            )
            self._seen.numbers[:, wanted], self._seen.texts[:, wanted] = (
                seen.numbers,
                seen.texts,
            )
            self._known[wanted] = True
        return self._seen, places


def seen_columns(
    conditions: Conditions,
    fixes: Present | Course,
    objects: Interner,
    *,
    space: Space,
) -> SeenColumns:
    """The columns that conditions name, as far as they are known in this run; shared by all who ask in it."""
    known = fixes.values.columns
    if id(conditions) not in known:
        known[id(conditions)] = SeenColumns(conditions, fixes, objects, space=space)
    columns: SeenColumns = known[id(conditions)]
    return columns
