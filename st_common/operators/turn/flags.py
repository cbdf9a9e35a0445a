"""What is asked again and again of every query of a stream, dropped ones too: as columns, by their numbers."""

from dataclasses import dataclass, fields

import numpy as np

from st_common.operators.expressions.fields import shown_columns
from st_common.operators.state.registered import Queries, Registered
from st_common.query.plan import Plan, Window

_KEPT = 4
_seen: list[tuple[Queries, "Flags"]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Columns with a value for each query.

    Further fixes of members are told, an aggregate stands above, there is a window or a frame, there is a frame,
    everything is told again at each result, columns are selected, members are told with the time until which they
    stay, objects are paired, it is judged at ticks, it is a fence, different values are counted. Then its aggregate's
    `function` (a text, None without), its window in microseconds and in fixes (-1 without), and the largest event time
    when it was registered.
    """

    every: np.ndarray
    grouped: np.ndarray
    windowed: np.ndarray
    framed: np.ndarray
    retelling: np.ndarray
    selecting: np.ndarray
    valid_until: np.ndarray
    paired: np.ndarray
    ticking: np.ndarray
    fenced: np.ndarray
    counts_different: np.ndarray
    function: np.ndarray
    window_us: np.ndarray
    window_tuples: np.ndarray
    since: np.ndarray

    @property
    def tells_members(self) -> np.ndarray:
        """Whether each query tells who is in its answer at ticks, and not what follows from that; bool[q]."""
        told: np.ndarray = ~self.grouped & ~self.framed & ~self.fenced
        return told


def flags_of(queries: Queries) -> Flags:
    """The flags of queries; of those that begin as others that were seen lately only what came since is looked at."""
    for known, flags in _seen:
        if known is queries:
            return flags
    begun = (pair for pair in _seen if pair[0] and queries[: len(pair[0])] == pair[0])
    known, flags = max(begun, key=lambda pair: len(pair[0]), default=((), _flags(())))
    made = _joined(flags, _flags(queries[len(known) :]))
    _seen.insert(0, (queries, made))
    del _seen[_KEPT:]
    return made


def _joined(first: Flags, then: Flags) -> Flags:
    names = [field.name for field in fields(Flags)]
    return Flags(
        **{
            name: np.concatenate([getattr(first, name), getattr(then, name)])
            for name in names
        }
    )


def _flags(queries: tuple[Registered, ...]) -> Flags:
    plans = [query.plan for query in queries]
    return Flags(
        every=np.array([plan.emit == "every" for plan in plans], bool),
        grouped=np.array([plan.aggregate is not None for plan in plans], bool),
        windowed=np.array(
            [plan.window is not None or plan.frame is not None for plan in plans], bool
        ),
        framed=np.array([plan.frame is not None for plan in plans], bool),
        retelling=np.array([plan.emit == "rstream" for plan in plans], bool),
        selecting=np.array([bool(shown_columns(plan)) for plan in plans], bool),
        valid_until=np.array([plan.valid_until for plan in plans], bool),
        paired=np.array([plan.pairs is not None for plan in plans], bool),
        ticking=np.array([plan.by_ticks for plan in plans], bool),
        fenced=np.array([plan.fence is not None for plan in plans], bool),
        counts_different=np.array(
            [
                plan.aggregate is not None
                and plan.aggregate.function == "count_distinct"
                for plan in plans
            ],
            bool,
        ),
        function=np.array(
            [plan.aggregate.function if plan.aggregate else None for plan in plans],
            object,
        ),
        since=np.array([query.since for query in queries], np.int64),
        **_windows(plans),
    )


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
