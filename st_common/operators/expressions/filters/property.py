"""The filter `property`: fixes with a value of an attribute, or joined with a feature that has it as a tag."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions.filters.protocol import Bools, Features, Fixes
from st_common.query.filters import name_and_value


class PropertyFilter:
    """Passes where `attribute:value` holds, as text and to the letter; names of attributes are so in any case."""

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """Which fixes have the value; bool[n], none where the stream has no such attribute.

        Args:
            fixes: n fixes.
            value: `name:value`; attributes that are no texts are compared as DuckDB writes them.
        """
        name, wanted = name_and_value(value) or ("", "")
        attribute = {
            known.casefold(): known for known in fixes.readings.attributes
        }.get(name.casefold())
        if attribute is None:
            return np.zeros(len(fixes), np.bool_)
        column = fixes.readings.attributes[attribute]
        if not pa.types.is_string(column.type):
            (column,) = expressions.values_as_text(
                ["value"], pa.table({"value": column})
            )
        return _equal(column, wanted)

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """Which pairs have the value on at least one side; bool[n].

        Args:
            fixes: n fixes.
            features: the feature that each is joined with, whose tags are asked.
            value: `name:value`.
        """
        name, wanted = name_and_value(value) or ("", "")
        return self.filter_fixes(fixes, value) | _equal(features.values(name), wanted)


def _equal(texts: pa.Array, wanted: str) -> Bools:
    if pa.types.is_null(texts.type):
        return np.zeros(len(texts), np.bool_)
    is_equal: Bools = pc.fill_null(pc.equal(texts, wanted), fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return is_equal
