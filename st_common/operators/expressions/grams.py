"""LIKE and ILIKE, as what they ask of the parts of a text (SPEC X13).

    class LIKE '%z12%'          a part of class is z12
    class ILIKE 'A_Bcd%'        a part of LOWER(class) is bcd
    class LIKE '_z_'            a part of class is z, for there is none of three characters

A pattern of whatever form holds pieces without wildcards, and these hold parts of at most three characters. Whose text
has none of them cannot match. The texts of a batch are cut into parts once, for all patterns; each is found by the
part that the fewest others have.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.operators.arrays.keys import MASK, SHIFT, packed, unique
from st_common.operators.expressions.atom import Atom
from st_common.operators.expressions.computed import is_expression
from st_common.runs import ranges

SIZE = 3
"""The characters of a part; a piece of fewer is one itself."""
_MOST = 256
"""The characters of a text that is cut; of a longer one nothing is known."""
_LIKE = re.compile(r"(.+) (I?LIKE) '((?:[^'\\]|'')*)'", re.DOTALL)


def gram_atom(part: str) -> Atom | None:
    """What a part of a condition asks of the parts of a text; None where it is no LIKE, or only wildcards.

    Args:
        part: canonical SQL, without AND.

    Returns:
        An atom with all parts of which a text that matches has each: one is enough to find it.
    """
    match = _LIKE.fullmatch(part)
    if match is None or not is_expression(match[1]):
        return None
    text, is_folded = match[1], match[2] == "ILIKE"
    pieces = re.split("[%_]", match[3].replace("''", "'"))
    if is_folded:
        # How others are folded only the database knows.
        pieces = [piece.lower() for piece in pieces if piece.isascii()]
    parts = _parts_of(pieces)
    if not parts:
        return None
    column = f"LOWER({text})" if is_folded else text
    return Atom(column=column, texts=parts, is_computed=True, is_parts=True, loose=True)


def _parts_of(pieces: list[str]) -> tuple[str, ...]:
    """The parts of pieces; of these the long ones, where there are any."""
    long = [piece for piece in pieces if len(piece) >= SIZE]
    parts = [
        piece[at : at + SIZE] for piece in long for at in range(len(piece) - SIZE + 1)
    ]
    return tuple(dict.fromkeys(parts or filter(None, pieces)))


def find_parts(values: pa.Array, names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Which texts have which parts.

    Args:
        values: string[n]; null has none.
        names: string, the parts that are looked for, each once.

    Returns:
        Two int64 arrays, pairs that are there once: places of texts, ascending, and of parts. A text that is too
        long to be cut has all of them.
    """
    coded = values.dictionary_encode()
    value, code = _parts_of_each(coded.dictionary, names)
    at = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    start = np.searchsorted(value, at)
    count = np.searchsorted(value, at, side="right") - start
    return np.repeat(np.arange(len(at)), count), code[ranges(start, count)]


def _parts_of_each(texts: pa.Array, names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """As `find_parts`, of texts that are there once each."""
    length = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    long = np.flatnonzero(length > _MOST)
    keys = [
        packed(np.repeat(long, len(names)), np.tile(np.arange(len(names)), len(long)))
    ]
    for size in pc.unique(pc.utf8_length(names)).to_pylist():
        which = np.flatnonzero((length >= size) & (length <= _MOST))
        # By the place in the text, which is short: all texts are cut there at once.
        for start in range(int(length[which].max(initial=0)) - size + 1):
            which = which[length[which] >= start + size]
            cut = pc.utf8_slice_codeunits(texts.take(which), start, start + size)
            code = pc.index_in(cut, value_set=names).fill_null(-1)
            code = code.to_numpy(zero_copy_only=False)
            known = np.flatnonzero(code >= 0)
            keys.append(packed(which[known], code[known]))
    pairs = unique(np.concatenate(keys))
    return pairs >> SHIFT, pairs & MASK
