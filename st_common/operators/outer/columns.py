"""The columns of rows as they were told, for the expressions of whoever asks about them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.geometry.space import Space
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.fields import TYPES
from st_common.operators.outer.specs import RowLayout
from st_common.query.grammar.words import text_literal

_OWN = ("object", "partner", "value")
_PATH = f'$."{TYPES}"'
_BEHIND = f',"{TYPES}":\\[.*\\]\\}}$'
"""The types at the end of fields; in a text of a user no such quote stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPoints:
    """Rows as conditions see them (`expressions.readings.Points`): their columns, whatever objects there are."""

    rows: pa.Table

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: np.ndarray) -> "RowPoints":
        """Some of the rows, by place or by mask."""
        places = np.flatnonzero(index) if index.dtype == bool else index
        return RowPoints(rows=self.rows.take(pa.array(places)).combine_chunks())

    def column(self, name: str, ids: pa.Array, *, space: Space) -> pa.Array | None:  # noqa: ARG002 - as of readings
        """A column by its name in any case; None where there is none."""
        return self._named([name]).get(name.casefold())

    def table(
        self,
        ids: pa.Array,  # noqa: ARG002 - as of readings
        *,
        space: Space,  # noqa: ARG002 - as of readings
        texts: Sequence[str] | None = None,  # noqa: ARG002 - as of readings
    ) -> pa.Table:
        """All columns."""
        return self.rows

    def columns(
        self,
        names: Sequence[str],
        ids: pa.Array,  # noqa: ARG002 - as of readings
        *,
        space: Space,  # noqa: ARG002 - as of readings
    ) -> dict[str, pa.Array]:
        """Some columns by their names; those that are not there are left out."""
        return self._named(names)

    def _named(self, names: Sequence[str]) -> dict[str, pa.Array]:
        wanted = {name.casefold() for name in names}
        pairs = zip(self.rows.column_names, self.rows.columns, strict=True)
        return {
            key: _in_one(column)
            for name, column in pairs
            if (key := name.casefold()) in wanted
        }


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of a table that is combined already."""
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def typed_rows(
    layout: RowLayout, told: pa.Table
) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """The columns that rows of one layout have, by name.

    Args:
        layout: their columns.
        told: n rows with the columns of `SHARD_SCHEMA`.

    Yields:
        Places of rows whose selected columns are of the same types, and these rows as a table; each row once.
    """
    own = {name: told[name] for name in _OWN}
    own |= {name: own[name].cast(pa.string()) for name in ("object", "partner")}
    chosen = [name for name, source in layout.sources if source == "selected"]
    parts = _by_types(chosen, told["fields"].combine_chunks()) if chosen else None
    for places, selected in parts or ((np.arange(len(told)), {}),):
        rows = pa.array(places)
        columns = {
            name: selected[name] if source == "selected" else own[source].take(rows)
            for name, source in layout.sources
        }
        yield places, pa.table(columns).combine_chunks()


def without_types(fields: pa.Array) -> pa.Array:
    """The selected columns as people see them."""
    return pc.replace_substring_regex(fields, _BEHIND, "}")


def _by_types(
    names: Sequence[str], fields: pa.Array
) -> Iterator[tuple[np.ndarray, dict[str, pa.Array]]]:
    """Places of rows whose columns have the same types, and these columns: as a rule one batch has all rows."""
    said = expressions.evaluated(
        [f"json_extract(fields, {text_literal(_PATH)})::VARCHAR"],
        pa.table({"fields": fields}),
    )
    encoded = said[0].cast(pa.string()).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code in np.unique(codes).tolist():
        places = np.flatnonzero(codes == code)
        if code < 0:  # none of the columns could be evaluated
            yield places, {name: pa.nulls(len(places)) for name in names}
            continue
        types = json.loads(encoded.dictionary[code].as_py())
        some = fields.take(pa.array(places))
        yield places, _read(dict(zip(names, types, strict=True)), some)


def _read(types: dict[str, str], fields: pa.Array) -> dict[str, pa.Array]:
    """Columns of these types out of JSON objects."""
    wanted = text_literal(json.dumps(types))
    (read,) = expressions.evaluated(
        [f"from_json(fields, {wanted})"], pa.table({"fields": fields})
    )
    return {name: read.field(at) for at, name in enumerate(types)}
