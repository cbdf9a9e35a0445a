"""Values as they are kept, the same in every format: no blanks around them, and one id for one number.

    " AB12 "              AB12
    219000001.0           219000001     of an id: what a column of whole numbers becomes where some are missing
    1.23456789012345e+15  1234567890123450, if the column holds numbers; a text stays as it is

Logs that were begun before there was such cleaning are read without it: `StreamSettings.cleaning`.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.decode.points import as_one
from st_common.formats.format_settings import Column, parts
from st_common.formats.numbers import as_texts

_FRACTION = r"^(-?(?:0|[1-9][0-9]*))\.0$"  # a whole number as floats are written
_EXACT = 2.0**53  # from here on not every whole number is a float
_BLANK, _LAST = 0x20, 0x7F  # of ASCII


def trimmed(texts: pa.Array) -> pa.Array:
    """Texts without the blanks around them; those that may have none are looked at once, as bytes."""
    data = texts.buffers()[2]
    if data is None or not len(texts):
        return texts
    # As signed bytes what is not ASCII is below 0, so that one pass sees it and blanks.
    if np.frombuffer(data, np.int8).min(initial=_LAST) > _BLANK:
        return texts
    return pc.utf8_trim_whitespace(texts)


def ids_of(
    fields: Mapping[str, pa.Array], column: Column, *, clean: bool
) -> pa.DictionaryArray:
    """The ids of records as texts, each once in the dictionary; null or "" where one is missing.

    Args:
        fields: the columns of the records.
        column: the column of ids, or several that are one id.
        clean: without blanks around them, and whole numbers without a fraction.
    """
    names = parts(column)
    if len(names) > 1 and clean:
        fields = {name: _each_once(fields[name], clean=True) for name in names}
        fields = {name: ids.dictionary_decode() for name, ids in fields.items()}
    return _each_once(as_one(fields, column, between="/"), clean=clean)


def _each_once(values: pa.Array, *, clean: bool) -> pa.DictionaryArray:
    """Values as texts; only those that differ are made texts of."""
    encoded = values.dictionary_encode()
    if not clean:
        texts = as_texts(encoded.dictionary).fill_null("")
        return pa.DictionaryArray.from_arrays(encoded.indices, texts)
    # Several values may be one id now: its texts stand once in the dictionary all the same.
    texts = _cleaned(encoded.dictionary).fill_null("")
    names = texts.dictionary_encode()
    if len(names.dictionary) == len(texts):
        return pa.DictionaryArray.from_arrays(encoded.indices, texts)
    return pa.DictionaryArray.from_arrays(
        names.indices.take(encoded.indices), names.dictionary
    )


def _cleaned(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        return _of_floats(values)
    texts = trimmed(as_texts(values))
    return pc.replace_substring_regex(texts, _FRACTION, r"\1")


def _of_floats(values: pa.Array) -> pa.Array:
    numbers = values.cast(pa.float64())
    whole = pc.and_(
        pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), _EXACT)
    )
    none = pa.scalar(None, pa.float64())
    as_whole = pc.if_else(whole, numbers, none).cast(pa.int64()).cast(pa.string())
    return pc.coalesce(as_whole, as_texts(numbers))
