"""An order of rows in which near values of several columns stand near each other."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_BITS = 16


def zorder(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """The rows in Morton order of the ranks of some columns; rows of equal code keep their order.

    The code of a row takes the highest bit of each rank in turn, then the next. Ranks are scaled to 16 bits (fewer with
    more than four columns). Ranks, not values: a skewed column counts as much as an even one.

        the places of 16 rows with x = 0 .. 3 (across) and y = 0 .. 3 (down), for columns x, y

            0   2   8  10
            1   3   9  11
            4   6  12  14
            5   7  13  15

    Args:
        rows: n rows.
        columns: the first one counts most where bits are equal; nulls and NaN rank last. With one, rows are sorted by
            it.
    """
    if not columns or len(rows) < 2:
        return rows
    code = np.zeros(len(rows), np.uint64)
    ranks = [_scaled(rows.column(name)) for name in columns]
    for bit in range(min(_BITS, 64 // len(columns)) - 1, -1, -1):
        for rank in ranks:
            code = (code << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return rows.take(np.argsort(code, kind="stable"))


def _scaled(column: pa.ChunkedArray) -> np.ndarray:
    ranks: np.ndarray = pc.rank(
        column.combine_chunks(), sort_keys="ascending", tiebreaker="min"
    ).to_numpy()
    share = (ranks.astype(np.float64) - 1) / max(len(ranks) - 1, 1)
    return np.asarray(share * ((1 << _BITS) - 1), np.uint64)
