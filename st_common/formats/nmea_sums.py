"""The sums that NMEA sentences end with."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.spans import Bytes, Ints, Mask

_DIGIT = np.full(256, 0, np.uint8)
for _place, _digits in enumerate(
    zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)
):
    _DIGIT[list(_digits)] = _place


def has_sum(texts: pa.Array, sums: pa.Array) -> Mask:
    """Whether the exclusive or of the bytes of each text is what two hexadecimal digits say."""
    padded = pc.binary_join_element_wise(texts, b"\0", b"")
    data, offsets = bytes_of(padded)
    found = np.bitwise_xor.reduceat(data, offsets[:-1]) if len(texts) else data
    digits, places = bytes_of(pc.binary_join_element_wise(sums, b"00", b""))
    high, low = _DIGIT[digits[places[:-1]]], _DIGIT[digits[places[:-1] + 1]]
    same: Mask = found == high * np.uint8(16) + low
    return same


def bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of all texts behind each other, and where each starts and the last one ends."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    places = np.frombuffer(offsets, np.int32)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return np.frombuffer(data, np.uint8), places.astype(np.int64)
