"""Pairs of fixes as expressions see them: the columns of the first, of the other, and what is measured between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.operators.expressions.readings import Readings
from st_common.query.pair_columns import (
    BEARING,
    DISTANCE,
    is_of_pair,
    of_other,
    own_name,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairReadings:
    """n pairs: see `Points`; names are those of `pair_columns`.

    Attributes:
        one: the first fix of each pair.
        other: the other one of each; any fix where there is none.
        has_other: bool[n], where there is one (else its columns are null); None: everywhere.
    """

    one: Readings
    other: Readings
    has_other: np.ndarray | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self.one)

    def take(self, index: np.ndarray) -> "PairReadings":
        """Some of the pairs: by place (int64) or by mask (bool[n])."""
        known = None if self.has_other is None else self.has_other[index]
        one, other = self.one.take(index), self.other.take(index)
        return PairReadings(one=one, other=other, has_other=known)

    def column(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array | None:
        """See `Readings.column`."""
        own = own_name(name)
        if own is not None:
            values = self.other.column(own, ids, space=space)
            return None if values is None else self._where_known(values)
        if is_of_pair(name):
            return self._measured(space).get(name.casefold())
        return self.one.column(name, ids, space=space)

    def table(
        self, ids: pa.Array, *, space: Space, texts: Sequence[str] | None = None
    ) -> pa.Table:
        """See `Readings.table`; columns of the other that occur in none of the texts are left out likewise."""
        one = self.one.table(ids, space=space, texts=texts)
        other = self.other.table(ids, space=space, texts=texts)
        columns = _unhidden(dict(zip(one.column_names, one.columns, strict=True)))
        columns |= {
            of_other(name): self._where_known(values)
            for name, values in zip(other.column_names, other.columns, strict=True)
        }
        return pa.table({**columns, **self._measured(space, texts)})

    def columns(
        self, names: Sequence[str], ids: pa.Array, *, space: Space
    ) -> dict[str, pa.Array]:
        """See `Readings.columns`."""
        first = [name for name in names if not is_of_pair(name)]
        others = [own for name in names if (own := own_name(name)) is not None]
        of_one = self.one.columns(first, ids, space=space)
        of_the_other = self.other.columns(others, ids, space=space)
        named = {
            of_other(name): self._where_known(values)
            for name, values in of_the_other.items()
        }
        return {**_unhidden(of_one), **named, **self._measured(space, names)}

    def _measured(
        self, space: Space, texts: Sequence[str] | None = None
    ) -> dict[str, pa.Array]:
        """What is measured between the two, as far as it occurs in the texts; all of it without any."""
        said = None if texts is None else " ".join(texts).casefold()
        ends = (self.one.x, self.one.y, self.other.x, self.other.y)
        measures = {DISTANCE: space.distance, BEARING: space.bearing}
        return {
            name: self._where_known(pa.array(measure(*ends), from_pandas=True))
            for name, measure in measures.items()
            if said is None or name in said
        }

    def _where_known(self, values: pa.Array) -> pa.Array:
        """Values that are of the other one, null where there is none."""
        if self.has_other is None or self.has_other.all():
            return values
        return pc.if_else(
            pa.array(self.has_other), values, pa.scalar(None, values.type)
        )


def _unhidden(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns of a first object but for those that are called like one of the pair: nobody can name them."""
    return {name: one for name, one in columns.items() if not is_of_pair(name)}
