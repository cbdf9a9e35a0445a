"""What references read: fixes and features as columns, and what expressions say of fixes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from st_common.query.neighbours import Place
from st_common.reference.metric import Bools, Floats, Ints, Metric, Objects, Point


class Expressions(Protocol):
    """The values of SQL for fixes; whoever reads the fixes knows how to find them. Null is None.

    `rows` are places in the columns of the fixes, `partners` (as many, or None) what each is joined with.
    """

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """The value of an expression of each row."""
        ...

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """The same as SQL's text."""
        ...

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """The value of an expression of each pair of two rows; the columns of the second are called `other.name`.

        Between the two are measured `pair.distance_m` and `pair.bearing_deg`.
        """
        ...

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """The value of an expression of each row beside a feature, whose `columns` are given by their names."""
        ...

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """The value of an expression of each group, which shows keys and values by their names."""
        ...

    def attributes(self, name: str, rows: Ints) -> Objects:
        """The text of an attribute of each row; None for all where there is no such attribute."""
        ...

    def let_through(
        self,
        name: str,
        value: str | None,
        rows: Ints,
        features: "tuple[str, Features] | None" = None,
    ) -> Bools:
        """Which rows a filter of users lets through: each alone, or beside a feature of a layer (its name) of its own.

        One for which it raises does not pass.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """Fixes as columns of one length; of a world at an instant the last one of each object that lives."""

    ids: Objects
    x: Floats
    y: Floats
    metric: Metric
    of: Expressions
    rows: Ints
    """What expressions know each fix by: from 0 on, but for fixes that were taken out of others."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, which: Ints) -> "Fixes":
        """Some of the fixes, by their places in the columns."""
        return Fixes(
            ids=self.ids[which],
            x=self.x[which],
            y=self.y[which],
            metric=self.metric,
            of=self.of,
            rows=self.rows[which],
        )

    def place_of(self, place: Place) -> Point:
        """Where a place is; a focal object is among the fixes."""
        if place.focal is None:
            return place.x, place.y
        row = self.ids.tolist().index(place.focal)
        return float(self.x[row]), float(self.y[row])

    def is_one_of(self, names: Sequence[str]) -> Bools:
        """Which fixes are of some objects. bool[n]."""
        return np.array([one in names for one in self.ids], np.bool_)

    def is_true(self, condition: str) -> Bools:
        """Of which fixes a condition is true; null is not. bool[n]."""
        values = self.of.values(condition, self.rows)
        return np.array([value is not None and bool(value) for value in values], bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of one version of a layer as columns of one length."""

    fids: Objects
    kinds: Objects
    tags: Sequence[Mapping[str, str]]
    shapes: np.ndarray

    def __len__(self) -> int:
        return len(self.fids)

    def column(self, name: str) -> Objects:
        """The fid, the kind or a tag of each; None where it has none."""
        own = {"fid": self.fids, "kind": self.kinds}
        if name in own:
            return own[name]
        return objects([tags.get(name) for tags in self.tags])

    def take(self, which: Ints) -> "Features":
        """Some of them, by their places in the columns."""
        return Features(
            fids=self.fids[which],
            kinds=self.kinds[which],
            tags=[self.tags[row] for row in which.tolist()],
            shapes=self.shapes[which],
        )


def objects(values: Sequence[object]) -> Objects:
    """A column of whatever values, also of sequences. object[n]."""
    column = np.empty(len(values), np.object_)
    column[:] = values
    return column


def equal(column: Objects, value: object) -> Bools:
    """Where a column has a value, bool[n]; NumPy itself would take a text for another that ends with a NUL."""
    return np.array([one == value for one in column], np.bool_)
