"""Two streams in one query, and what it must tell, by looking at all fixes of both at each second."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SILENCE_S, NEAR_M, SIDE_M = 20, 10, 16


@dataclass(frozen=True, slots=True)
class Said:
    """A row of a stream's log: a fix on a line, that an object is gone (`x` is None), or that a time has come."""

    object: str
    second: int
    x: int | None = 0


CLOCK = ""
"""The object of a row that says only that a time has come."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A fix with the second from which on it counts, its stream, and its number in that stream."""

    due: int
    stream: int
    number: int
    said: Said


def counted(
    stream: int, rows: Sequence[Said], lateness_s: int, before: int
) -> Iterator[Counted]:
    """The fixes of a stream that count, each with the time from which on.

    Of the first rows, which came before the query, the last fix of each object counts, from its own time on.
    """
    high: int | None = None
    last: dict[str, Counted] = {}
    for number, row in enumerate(rows):
        known, high = high, row.second if high is None else max(high, row.second)
        if row.object == CLOCK:
            continue
        if lateness_s and known is not None and row.second < known - lateness_s:
            continue
        if number < before:
            if row.object not in last or last[row.object].said.second < row.second:
                last[row.object] = Counted(row.second, stream, number, row)
        elif lateness_s:
            yield Counted(row.second, stream, number, row)
        elif known is None or row.second + SILENCE_S >= known:
            yield Counted(high, stream, number, row)
    yield from last.values()


def expected(
    cars: Sequence[Said],
    police: Sequence[Said],
    lateness_s: tuple[int, int],
    before: tuple[int, ...] = (0, 0),
) -> dict[str, dict[int, Any]]:
    """What holds from each second on at which it changes: cars near police, around police a, and the nearest to it."""
    fixes = sorted(
        [
            *counted(0, cars, lateness_s[0], before[0]),
            *counted(1, police, lateness_s[1], before[1]),
        ],
        key=lambda one: (one.due, one.stream, one.number),
    )
    out: dict[str, dict[int, Any]] = {"near": {}, "around": {}, "nearest": {}}
    latest: dict[tuple[int, str], Said] = {}
    seconds = [one.said.second for one in fixes]
    # Both have ended: the last tick is at the last time that any row says.
    seconds += [row.second for row in (*cars, *police)]
    waiting = iter([*fixes, None])
    head = next(waiting)
    for second in range(min(seconds, default=0), max(seconds, default=-1) + 1):
        while head is not None and head.due <= second:
            key = head.stream, head.said.object
            if key not in latest or latest[key].second < head.said.second:
                latest[key] = head.said
            head = next(waiting)
        # An object has expired once the clock is past its end; at the end of both it is not.
        places = _places(latest, second if second < max(seconds) else second - 1)
        for query, value in _answers(places).items():
            out[query][second] = value
    return {query: _changes(values) for query, values in out.items()}


def _places(
    latest: dict[tuple[int, str], Said], second: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Where cars and police are."""
    there = {
        key: one.x
        for key, one in latest.items()
        if one.x is not None and second < one.second + SILENCE_S
    }
    cars = {name: x for (stream, name), x in there.items() if stream == 0}
    police = {name: x for (stream, name), x in there.items() if stream == 1}
    return cars, police


def _answers(
    places: tuple[dict[str, int], dict[str, int]],
) -> dict[str, frozenset[Any]]:
    cars, police = places
    near = {(c, p) for c in cars for p in police if abs(cars[c] - police[p]) <= NEAR_M}
    around: set[str] = set()
    nearest: set[str] = set()
    if "a" in police:
        away = {name: abs(x - police["a"]) for name, x in cars.items()}
        around = {name for name, far in away.items() if far <= SIDE_M / 2}
        nearest = set(sorted(away, key=lambda name: (away[name], name))[:1])
    return {
        "near": frozenset(near),
        "around": frozenset(around),
        "nearest": frozenset(nearest),
    }


def told(changes: Iterable[dict[str, Any]]) -> dict[str, dict[int, Any]]:
    """As `expected`, of the changes of these queries in their order."""
    members: dict[str, set[Any]] = {"near": set(), "around": set(), "nearest": set()}
    out: dict[str, dict[int, Any]] = {query: {} for query in members}
    for one in sorted(changes, key=lambda one: (one["position"], one["seq"])):
        query = one["query"]
        row = one["object"]
        if query == "near":
            row = row, one["partner"]
        (members[query].add if one["sign"] > 0 else members[query].remove)(row)
        out[query][round(one["event_ts"].timestamp())] = frozenset(members[query])
    return {query: _changes(values) for query, values in out.items()}


def _changes(values: dict[int, Any]) -> dict[int, Any]:
    """Only what differs from the second before; nothing is there before the first."""
    before: Any = frozenset()
    out = {}
    for second, value in sorted(values.items()):
        if value != before:
            out[second] = value
        before = value
    return out
