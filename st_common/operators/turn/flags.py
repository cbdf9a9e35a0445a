"""What is asked again and again of every query of a stream, dropped ones too: as columns, by their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from st_common.operators.expressions.fields import shown_columns
from st_common.operators.state.registered import Queries, Registered
from st_common.query.binding import PARTNER
from st_common.query.near_columns import names_near
from st_common.query.pair_columns import names_pair
from st_common.query.plan import Aggregate, Plan, Top, Value, Window

PAIRED, SEMI, ANTI, LEFT = 0, 1, 2, 3
"""Pairs are rows as they are; or rows are the objects that have a partner, or that have none; or pairs and these."""
_HOW = {"inner": PAIRED, "semi": SEMI, "anti": ANTI, "left": LEFT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Several values of each group, and names and expressions of its keys; which are told. See `Aggregate`.

    `nested`: another query asks about the groups. `by_partner`: its one key is the partner, whose id names the group.
    """

    values: tuple[Value, ...]
    keys: tuple[tuple[str, str], ...]
    top: Top | None
    nested: bool
    by_partner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What is asked of each query again and again; columns with a row for each query of the stream, dropped ones too.

    Attributes:
        every: bool, further fixes of members are told (`EMIT EVERY`, and where another query asks for their columns).
        grouped: bool, an aggregate stands above.
        windowed: bool, there is a window or a frame.
        framed: bool, there is a frame: windows in brackets.
        retelling: bool, everything is told again at each result (`RSTREAM`).
        selecting: bool, columns are selected.
        showing_other: bool, columns of the other object of a pair are among them, or what is measured between the two.
        showing_tags: bool, tags of the feature of a pair are among them.
        showing_near: bool, which of the nearest a member is, or how far away, is among them.
        valid_until: bool, members are told with the time until which they stay (SPEC G8).
        paired: bool, objects are paired.
        choosing: int8, what becomes of pairs of objects: `PAIRED`, or objects are chosen by them, `SEMI` or `ANTI`;
            `LEFT`: both.
        nested: bool, another query asks about its rows, and is told in place of them.
        ticking: bool, it is judged at ticks.
        fenced: bool, it is a fence: it tells of events at a border, not of members.
        counts_nothing: bool, no members have a value as well: they are counted without groups.
        counts_different: bool, different values are counted.
        function: the name of the aggregate's function, None without.
        several: its `Several` values, None where it has one.
        window_us: int64, the length of its window in microseconds, -1 without.
        window_tuples: int64, the length of its window in fixes, -1 without.
        since: int64, the largest event time in the log when it was registered, in microseconds.
    """

    every: np.ndarray
    grouped: np.ndarray
    windowed: np.ndarray
    framed: np.ndarray
    retelling: np.ndarray
    selecting: np.ndarray
    showing_other: np.ndarray
    showing_tags: np.ndarray
    showing_near: np.ndarray
    valid_until: np.ndarray
    paired: np.ndarray
    choosing: np.ndarray
    nested: np.ndarray
    ticking: np.ndarray
    fenced: np.ndarray
    counts_nothing: np.ndarray
    counts_different: np.ndarray
    function: np.ndarray
    several: np.ndarray
    window_us: np.ndarray
    window_tuples: np.ndarray
    since: np.ndarray

    @property
    def tells_members(self) -> np.ndarray:
        """Whether each query tells who is in its answer at ticks, and not what follows from that; bool[q]."""
        told: np.ndarray = ~self.grouped & ~self.framed & ~self.fenced
        return told


def flags_of(queries: Queries) -> Flags:
    """The flags of queries, kept with them; of those that were made of others only what is new is looked at."""
    kept: Flags | None = queries.derived.get(Flags)
    if kept is None:
        kept = queries.derived[Flags] = _flags_by_origin(queries)
        # It would keep all queries of before in memory.
        queries.forget_origin()
    return kept


def _flags_by_origin(queries: Queries) -> Flags:
    """The flags of queries by those of what they were made of: only new and changed ones are looked at."""
    origin = queries.origin
    known = None if origin is None else origin.queries.derived.get(Flags)
    if origin is None or known is None:
        return _flags(queries)
    new = _flags(queries[len(origin.queries) :])
    numbers = sorted(origin.changed)
    changed = _flags([queries[number] for number in numbers])
    columns = {}
    for name in (field.name for field in fields(Flags)):
        column = np.concatenate([getattr(known, name), getattr(new, name)])
        column[numbers] = getattr(changed, name)
        columns[name] = column
    return Flags(**columns)


def _flags(queries: Sequence[Registered]) -> Flags:
    plans = [query.plan for query in queries]
    nested = [plan.outer is not None for plan in plans]
    return Flags(
        every=np.array([_tells_every(plan) for plan in plans], bool),
        grouped=np.array([plan.aggregate is not None for plan in plans], bool),
        windowed=np.array(
            [plan.window is not None or plan.frame is not None for plan in plans], bool
        ),
        framed=np.array([plan.frame is not None for plan in plans], bool),
        retelling=np.array([_retells(plan) for plan in plans], bool),
        selecting=np.array([bool(shown_columns(plan)) for plan in plans], bool),
        showing_other=np.array([_shows_other(plan) for plan in plans], bool),
        showing_tags=np.array([_shows_tags(plan) for plan in plans], bool),
        showing_near=np.array([_shows_near(plan) for plan in plans], bool),
        valid_until=np.array([plan.valid_until for plan in plans], bool),
        nested=np.array(nested, bool),
        paired=np.array([_pairs_objects(plan) for plan in plans], bool),
        choosing=np.array([_chosen_how(plan) for plan in plans], np.int8),
        ticking=np.array([plan.by_ticks for plan in plans], bool),
        fenced=np.array([plan.fence is not None for plan in plans], bool),
        **counted_flags([plan.aggregate for plan in plans], nested=nested),
        since=np.array([query.since for query in queries], np.int64),
        **_windows(plans),
    )


def _pairs_objects(plan: Plan) -> bool:
    """Whether its rows are pairs of objects."""
    return plan.pairs is not None and not plan.pairs.chooses


def _chosen_how(plan: Plan) -> int:
    """What becomes of its pairs of objects; `PAIRED` where there are none."""
    return PAIRED if plan.pairs is None else _HOW[plan.pairs.how]


def _tells_every(plan: Plan) -> bool:
    """Whether further fixes of members are told."""
    return plan.emit == "every" or (plan.outer is not None and bool(plan.columns))


def _retells(plan: Plan) -> bool:
    """Whether all members are told again; where another query asks about them, its answer is, and not they."""
    return plan.emit == "rstream" and plan.outer is None


def _shows_other(plan: Plan) -> bool:
    """Whether columns of a pair are selected that its first object has not."""
    shown = (text for _, text in plan.columns)
    return _pairs_objects(plan) and any(names_pair(text) for text in shown)


def _shows_tags(plan: Plan) -> bool:
    """Whether tags of the feature of a pair are selected."""
    return plan.join is not None and any(names_pair(text) for _, text in plan.columns)


def _shows_near(plan: Plan) -> bool:
    """Whether it is selected which of the nearest a member is, or how far away."""
    return any(names_near(text) for _, text in plan.columns)


def counts_nothing(aggregate: Aggregate | None) -> bool:
    """Whether an aggregate tells of no members as well: without groups it counts, or has several values."""
    return (
        aggregate is not None
        and not aggregate.grouped_by
        and aggregate.function in ("count", "count_distinct", "several")
    )


def counted_flags(
    aggregates: Sequence[Aggregate | None],
    *,
    nested: Sequence[bool],
    of_rows: bool = False,
) -> dict[str, np.ndarray]:
    """What is asked again and again of aggregates; by the name of the column in `Flags`.

    Args:
        aggregates: those of queries, None for none.
        nested: whether other queries ask about their groups.
        of_rows: whether they stand above rows of queries; there a partner is a column as any other.
    """
    several = [
        _several_of(aggregate, nested=is_nested, of_rows=of_rows)
        for aggregate, is_nested in zip(aggregates, nested, strict=True)
    ]
    return {
        "counts_nothing": np.array(list(map(counts_nothing, aggregates)), bool),
        "counts_different": np.array(list(map(counts_different, aggregates)), bool),
        "function": _column([one.function if one else None for one in aggregates]),
        "several": _column(several),
    }


def _several_of(
    aggregate: Aggregate | None, *, nested: bool, of_rows: bool
) -> Several | None:
    """The several values of an aggregate; None where it has one."""
    if aggregate is None or aggregate.function != "several":
        return None
    return Several(
        values=aggregate.values,
        keys=aggregate.keys,
        top=aggregate.top,
        nested=nested,
        by_partner=not of_rows and aggregate.grouped_by == (PARTNER,),
    )


def _column(values: Sequence[object]) -> np.ndarray:
    """Values of any kind as a column, each as it is."""
    column = np.full(len(values), None, object)
    column[:] = values
    return column


def counts_different(aggregate: Aggregate | None) -> bool:
    """Whether an aggregate counts different values."""
    return aggregate is not None and aggregate.function == "count_distinct"


def _windows(plans: list[Plan]) -> dict[str, np.ndarray]:
    windows: list[Window | None] = [plan.window for plan in plans]
    seconds = [None if window is None else window.seconds for window in windows]
    tuples = [None if window is None else window.tuples for window in windows]
    return {
        "window_us": np.array(
            [-1 if s is None else round(s * 1e6) for s in seconds], np.int64
        ),
        "window_tuples": np.array(
            [-1 if count is None else count for count in tuples], np.int64
        ),
    }
