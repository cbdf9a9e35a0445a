"""The k-th smallest value of each row of ragged candidates, and who of equals comes first: by id, as text."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common.runs import is_first, ranges, ranks_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_PADDING = 4  # times as many places as values: beyond, rows are sorted instead of laid side by side


def kth_smallest(start: Ints, value: Floats, k: Ints) -> Floats:
    """The k-th smallest value of each row; float64[m], infinite when there are fewer.

    Args:
        start: int64[m + 1], row r has the values `start[r] : start[r + 1]`; each has at least one.
        value: float64[start[m]], not NaN.
        k: int64[m], at least 1.

    Example:
        rows 5, 1, 3 and 7 with k = 2:  3 and infinite
    """
    counts = np.diff(start)
    limit = np.full(len(counts), np.inf)
    enough = np.flatnonzero(counts >= k)
    if not len(enough):
        return limit
    width = int(counts[enough].max())
    if width * len(enough) <= _MOST_PADDING * len(value):
        table = np.full((len(enough), width), np.inf)
        filled = np.arange(width) < counts[enough][:, None]
        table[filled] = value[ranges(start[:-1][enough], counts[enough])]
        places = np.unique(k[enough] - 1)
        # A partial sort: only the places of the k-th values need be right.
        table.partition(places, axis=1)
        limit[enough] = table[np.arange(len(enough)), k[enough] - 1]
        return limit
    order = np.lexsort((value, np.repeat(np.arange(len(counts)), counts)))
    limit[enough] = value[order[start[:-1][enough] + k[enough] - 1]]
    return limit


def last_of_equals(
    start: Ints, value: Floats, number: Ints, k: Ints, limit: Floats, ids: pa.Array
) -> Ints:
    """For each row whose k-th value others share: the number of the last one, by id, that is among the k; else -1.

    Only the ids of equals are compared, by code points.

    Args:
        start: as in `kth_smallest`.
        value: see there.
        number: int64[start[m]], whose value it is: a place in `ids`.
        k: see there.
        limit: what `kth_smallest` gave.
        ids: texts, each once.
    """
    row = np.repeat(np.arange(len(k)), np.diff(start))
    known = np.isfinite(value) | (np.diff(start) >= k)[row]
    less = np.bincount(row[value < limit[row]], minlength=len(k))
    equal = np.flatnonzero((value == limit[row]) & known)
    room = k - less
    tied = np.bincount(row[equal], minlength=len(k)) > room
    equal = equal[tied[row[equal]]]
    tie = np.full(len(k), -1)
    if len(equal):
        rank = _ranks(number[equal], ids)
        order = np.lexsort((rank, row[equal]))
        rows, first = np.unique(row[equal], return_index=True)
        tie[rows] = number[equal][order[first + room[rows] - 1]]
    return tie


def _ranks(number: Ints, ids: pa.Array) -> Ints:
    """The place of each one's id among all of them in the order of text."""
    distinct, place = np.unique(number, return_inverse=True)
    order = pc.array_sort_indices(ids.take(pa.array(distinct))).to_numpy()
    rank = np.empty(len(distinct), np.int64)
    rank[order] = np.arange(len(distinct))
    return rank[place]


def among_first(
    value: Floats, number: Ints, limit: Floats, tie: Ints, ids: pa.Array
) -> npt.NDArray[np.bool_]:
    """Whether each pair belongs to the first k of its row: below the limit, or equal and not after the tie; bool[p].

    Args:
        value: float64[p].
        number: int64[p], whose value it is: a place in `ids`.
        limit: float64[p], as `kth_smallest` gave it for the pair's row.
        tie: int64[p], as `last_of_equals` gave it.
        ids: texts.
    """
    keep: npt.NDArray[np.bool_] = value <= limit
    tied = np.flatnonzero((value == limit) & (tie >= 0))
    if len(tied):
        mine, last = ids.take(pa.array(number[tied])), ids.take(pa.array(tie[tied]))
        keep[tied] = np.asarray(pc.less_equal(mine, last))
    return keep


def first_of_all(
    value: Floats, k: Ints, number: Ints, ids: pa.Array
) -> npt.NDArray[np.bool_]:
    """Who of n belongs to the first k at each of t moments, for m queries: by value, of equals by id; bool[t, m, n].

    Args:
        value: float64[t, m, n]; NaN belongs to none.
        k: int64[m], at least 1; where there are fewer than k, all belong.
        number: int64[t, n], whose values they are at each moment: places in `ids`.
        ids: texts; those of one moment are all different.

    Example:
        values 3, 1, 3, NaN of b, a, c, d with k = 2:  a, and of the equal b and c the first: b
    """
    out = np.zeros(value.shape, np.bool_)
    if not value.size:
        return out
    moments, queries, width = value.shape
    places = np.minimum(k, width) - 1
    ordered = np.partition(value, np.unique(places), axis=2)  # NaN comes last
    limit = ordered[:, np.arange(queries), places]
    limit = np.where(np.isnan(limit) | (k > width), np.inf, limit)
    with np.errstate(invalid="ignore"):
        moment, query, column = np.nonzero(value <= limit[:, :, None])
    row, chosen, whose = (
        moment * queries + query,
        value[moment, query, column],
        number[moment, column],
    )
    start = np.searchsorted(row, np.arange(moments * queries + 1))
    limit = limit.ravel()
    tie = last_of_equals(start, chosen, whose, np.tile(k, moments), limit, ids)
    out[moment, query, column] = among_first(chosen, whose, limit[row], tie[row], ids)
    return out


def first_k(row: Ints, number: Ints, value: Floats, k: int, decimals: int) -> Ints:
    """The places of the pairs that are among the k least of their row; int64, by row, then value, then number.

    Args:
        row: int64[p], of each pair.
        number: int64[p]: of equal values the lowest number comes first.
        value: float64[p], not NaN.
        k: how many of each row; all where it has fewer.
        decimals: how many of a value count: what differs less is equal.

    Example:
        rows 0, 0, 0, 1 with values 5, 2, 5, 9 of the numbers 7, 3, 4, 1 and k = 2:  places 1, 2, 3
    """
    order = np.lexsort((number, np.round(value, decimals), row))
    chosen: Ints = order[ranks_of(is_first(row[order])) < k]
    return chosen
