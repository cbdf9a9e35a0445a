"""Changes of a bench's stream as counts and as the answer that they fold to, straight from the table."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.expected import SHIFT
from bench.oldenburg import STREAM
from st_common import tables
from st_common.config.home import Home


class Rows:
    """The signed rows of a table of changes, and the positions at which its rounds begin and the last one ends."""

    def __init__(self, home: Home, bounds: list[int]) -> None:
        self.table = home.table("changes", STREAM)
        self.bounds = np.array(bounds)

    def columns(self, *names: str) -> pa.Table:
        """Columns of the changes."""
        return tables.read(self.table, columns=list(names))


def signs_by_round(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """How many + and how many - each round has."""
    table = rows.columns("position", "sign")
    at = np.searchsorted(rows.bounds, table["position"].to_numpy(), side="right") - 1
    sign = table["sign"].to_numpy()
    count = len(rows.bounds) - 1
    return np.bincount(at[sign > 0], minlength=count), np.bincount(
        at[sign < 0], minlength=count
    )


def folded_keys(rows: Rows, *, pairs: bool) -> np.ndarray:
    """The answer that all changes fold to, as the keys of `bench.expected`; a sum that is not 0 or 1 is an error."""
    columns = ("object", "partner") if pairs else ("query", "object")
    table = rows.columns(*columns, "sign")
    left, right = (_numbers(table[name]) for name in columns)
    key, place = np.unique((left << SHIFT) | right, return_inverse=True)
    total = np.bincount(place, weights=table["sign"].to_numpy(), minlength=len(key))
    if not np.isin(total, (0, 1)).all():
        raise SystemExit(
            f"{np.count_nonzero(~np.isin(total, (0, 1)))} members are there twice or less than never"
        )
    folded: np.ndarray = key[total > 0]
    return folded


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The number after the one letter of ids such as q17 and o4."""
    encoded = column.combine_chunks().dictionary_encode()
    encoded = (
        encoded if isinstance(encoded, pa.DictionaryArray) else encoded.combine_chunks()
    )
    numbers = pc.cast(pc.utf8_slice_codeunits(encoded.dictionary, 1), pa.int64())
    found: np.ndarray = numbers.take(encoded.indices).to_numpy()
    return found
