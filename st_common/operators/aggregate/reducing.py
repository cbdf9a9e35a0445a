"""Values of groups from what is counted in them: one for each cell and group (SPEC G9)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from st_common.operators.aggregate import several
from st_common.operators.aggregate.as_json import reduced_texts
from st_common.operators.aggregate.top import told_groups
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.flags import Several
from st_common.operators.turn.turn import Turn
from st_common.query.plan import AS_JSON, COUNTS
from st_common.runs import firsts


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """One value per cell (a query, or a query at a tick) and group.

    Attributes:
        cell: int64[n].
        group: int64[n].
        value: float64[n], NaN for distinct, and for several values.
        text: int64[n], of several values what the group shows (see `Groups`); without it `NO_PARTNER`.
    """

    cell: np.ndarray
    group: np.ndarray
    value: np.ndarray
    text: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.text) != len(self.cell):
            object.__setattr__(self, "text", np.full(len(self.cell), NO_PARTNER))


def both(parts: Sequence[Reduced]) -> Reduced:
    """The values of some sets of cells, none of which is in two, one behind the other."""
    none = np.empty(0, np.int64)
    every = [Reduced(cell=none, group=none, value=np.empty(0)), *parts]
    names = Reduced.__dataclass_fields__
    return Reduced(
        **{
            name: np.concatenate([getattr(part, name) for part in every])
            for name in names
        }
    )


def reduced_cells(
    turn: Turn,
    query: np.ndarray,
    cell: np.ndarray,
    group: np.ndarray,
    amounts: np.ndarray,
) -> Reduced:
    """One value, or several, per cell and group (SPEC G9).

    Sums are taken in the order of the values, so that they depend on nothing but these (docs/adr/0009).

    Args:
        turn: the run.
        query: int64[n], by whose aggregate each row counts; one for all rows of a cell.
        cell: int64[n].
        group: int64[n].
        amounts: float64[n, w], what each adds to the values of its query, NaN for null: it adds nothing.

    Returns:
        Values of groups with any; counts, speeds and distinct ones also of groups whose values are all null, as
        several.
        None of a cell without rows.

    Example:
        SUM of group 5: 2, 3; group 6: null; group 7: 1      5: 5, 7: 1
        COUNT of group 5: null, null                         5: 0
    """
    function, parts = turn.known.function[query], list[Reduced]()
    for name in REDUCE:
        mine = np.flatnonzero(function == name)
        if len(mine):
            part = _of_function(name, cell[mine], group[mine], amounts[mine, 0])
            parts.append(part)
    for spec, mine in several.by_aggregate(turn, query):
        parts.append(_of_several(turn, spec, cell[mine], group[mine], amounts[mine]))
    return both(parts)


def _of_function(
    function: str, cell: np.ndarray, group: np.ndarray, value: np.ndarray
) -> Reduced:
    """One value per cell and group of rows of one aggregate."""
    # By value within a group: sums depend on the order in which they are taken, and rows come in any.
    order = np.lexsort((value, group, cell))
    cell, group = cell[order], group[order]
    starts = firsts(cell, group)
    values, count = _values(function, value[order], starts)
    keep = (count > 0) | (function in (*COUNTS, "distinct", "avgspd"))
    return Reduced(
        cell=cell[starts][keep], group=group[starts][keep], value=values[keep]
    )


def _of_several(
    turn: Turn,
    spec: Several,
    cell: np.ndarray,
    group: np.ndarray,
    amounts: np.ndarray,
) -> Reduced:
    """What each cell and group shows of rows of one aggregate."""
    order = np.lexsort((group, cell))
    starts = firsts(cell[order], group[order])
    cell_of, group_of = cell[order][starts], group[order][starts]
    columns = np.full((len(starts), len(spec.values)), np.nan)
    texts, run = dict[int, pa.Array](), np.empty(len(order), np.int64)
    run[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
    for place, value in enumerate(spec.values):
        amount = amounts[:, place]
        if value.function in AS_JSON:
            of = turn.numbering.partners
            texts[place] = reduced_texts(of, value, run, amount, len(starts))
            continue
        by_amount = np.lexsort((amount, group, cell))
        values, count = _values(
            value.function,
            amount[by_amount],
            starts,
            _SHARES.get(value.function, value.share),
        )
        has_value = (count > 0) | (value.function in COUNTS)
        columns[:, place] = np.where(has_value, values, np.nan)
    told = told_groups(turn.numbering.partners, spec, cell_of, group_of, columns)
    columns, group_of = columns[told], group_of[told]
    texts = {place: column.take(pa.array(told)) for place, column in texts.items()}
    return Reduced(
        cell=cell_of[told],
        group=group_of,
        value=columns[:, 0] if len(spec.values) == 1 else np.full(len(told), np.nan),
        text=several.shown(turn.numbering, spec, group_of, columns, texts),
    )


_SHARES = {"median": 0.5}


def _values(
    function: str, value: np.ndarray, starts: np.ndarray, share: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The value of each run of rows that begins at these places, and how many of them are not null.

    The rows of a run ascend, null last. `share`: that quantile of each.
    """
    known = ~np.isnan(value)
    count = np.add.reduceat(known.astype(np.int64), starts)
    if share is not None:
        return _quantile(value, starts, count, share), count
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a sum may be beyond all doubles
        return REDUCE[function](value, known, starts, count), count


def _quantile(
    value: np.ndarray, starts: np.ndarray, count: np.ndarray, share: float
) -> np.ndarray:
    """A quantile of each run, between two values in proportion; of 1, 2, 3, 4 that of 0.5 is 2.5."""
    place = share * np.maximum(count - 1, 0)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    below, above = value[starts + low], value[starts + high]
    # Of two that are alike the same one, also of infinities.
    between = np.where(below == above, 0.0, (above - below) * (place - low))
    return np.asarray(below + between)


def _variance(
    value: np.ndarray, known: np.ndarray, starts: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """The variance of each run as of a sample, NaN of fewer than two values: by their differences from the mean.

    With more digits than are told, so that values that spread alike are told alike: 1, 3, 3 as 1, 1, 3, 3.
    """
    lengths = np.diff(np.r_[starts, len(value)])
    value = value.astype(np.longdouble)
    mean = REDUCE["avg"](value, known, starts, count)
    apart = np.where(known, value - np.repeat(mean, lengths), 0.0)
    squares = np.add.reduceat(apart * apart, starts)
    return np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan)


def _distinct_count(
    value: np.ndarray, known: np.ndarray, starts: np.ndarray, count: np.ndarray
) -> np.ndarray:
    row = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(value)]))
    pairs = np.unique(np.stack([row[known].astype(float), value[known]]), axis=1)
    return np.bincount(pairs[0].astype(np.int64), minlength=len(count)).astype(float)


REDUCE: dict[
    str, Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
] = {
    "count": lambda value, known, starts, count: count.astype(float),  # noqa: ARG005 - one signature for all
    "count_distinct": _distinct_count,
    "sum": lambda value, known, starts, count: np.add.reduceat(  # noqa: ARG005
        np.where(known, value, 0.0), starts
    ),
    "avg": lambda value, known, starts, count: (
        np.add.reduceat(np.where(known, value, 0.0), starts) / np.maximum(count, 1)
    ),
    "min": lambda value, known, starts, count: np.minimum.reduceat(  # noqa: ARG005
        np.where(known, value, np.inf), starts
    ),
    "max": lambda value, known, starts, count: np.maximum.reduceat(  # noqa: ARG005
        np.where(known, value, -np.inf), starts
    ),
    "var": lambda *run: _variance(*run).astype(float),
    "stddev": lambda *run: np.sqrt(_variance(*run)).astype(float),
    "distinct": lambda value, known, starts, count: np.full(len(starts), np.nan),  # noqa: ARG005
    # Each row of an object adds the same: the speed, or the way, over all of them.
    "avgspd": lambda value, known, starts, count: value[starts],  # noqa: ARG005
    "travelled": lambda value, known, starts, count: value[starts],  # noqa: ARG005
    "odometer": lambda value, known, starts, count: value[starts],  # noqa: ARG005
}
