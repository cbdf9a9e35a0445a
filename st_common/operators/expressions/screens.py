"""What fixes must satisfy beside region and selection, for many queries at once: boxes met or not met, keys, filters.

Candidate pairs of a point and a query come from indexes; here they are tested as arrays, whatever query they are of
(SPEC B8, B10, P8).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from st_common.geometry.enlarged import half_sides, meets
from st_common.geometry.longitudes import turned
from st_common.geometry.space import Space
from st_common.operators.arrays.numbered import numbered
from st_common.operators.expressions.comparing import (
    Filtering,
    Meeting,
    Steps,
    edges_of,
)
from st_common.operators.expressions.failures import each_alone, note
from st_common.operators.expressions.filters import WHOLE, filter_called
from st_common.operators.expressions.filters.protocol import Features, Filter, Fixes
from st_common.operators.expressions.filters.users import OverrunError, UserFilter
from st_common.operators.expressions.readings import Readings
from st_common.operators.state.intern import Interner, Sought
from st_common.runs import firsts

_MOST_PAIRS = 1 << 17  # tested together: their columns stay in the processor's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Screens:
    """What q queries ask beside region and selection, by their numbers.

    Attributes:
        boxes: float64[4, m], all boxes to be met: minx, miny, maxx, maxy.
        value: float64[m], by what the fix's box grows for each, in coordinates.
        metres: float64[m], and in metres.
        negative: bool[m], it must not be met.
        meetings: rounds, int32[q] each: the place of a box to be met, at most one of each query, -1 without.
        filters: the different filters.
        filtered: rounds, int32[q] each: the place of a filter.
        key: int32[q], the place in `ids` of the one object that a query is about, -1 for any.
        ids: the ids of these objects.
    """

    boxes: np.ndarray
    value: np.ndarray
    metres: np.ndarray
    negative: np.ndarray
    meetings: tuple[np.ndarray, ...]
    filters: tuple[Filtering, ...]
    filtered: tuple[np.ndarray, ...]
    key: np.ndarray
    ids: Sought

    @property
    def empty(self) -> bool:
        """Whether nothing is asked for."""
        return not self.meetings and not self.filtered and not len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The points that screens are asked about.

    Attributes:
        readings: n fixes.
        objects: all objects, for ids.
        space: what coordinates mean.
    """

    readings: Readings
    objects: Interner
    space: Space


def compile_screens(
    total: int, steps: Mapping[int, Steps], left: Mapping[int, tuple[Meeting, ...]]
) -> Screens:
    """The screens of some queries, by number.

    Args:
        total: how many queries there are.
        steps: by number the steps of those that have any.
        left: by number the meetings that no index answers.
    """
    flat = [
        (number, meeting) for number, meetings in left.items() for meeting in meetings
    ]
    edges = np.array([edges_of(meeting.box) for _, meeting in flat], float)
    filters = numbered(one for of in steps.values() for one in of.filters)
    filtered = [
        (number, filters[one]) for number, of in steps.items() for one in of.filters
    ]
    keyed = {number: of.keys[0] for number, of in steps.items() if of.keys}
    ids = numbered(keyed.values())
    key = np.full(total, -1, np.int32)
    key[list(keyed)] = [ids[name] for name in keyed.values()]
    return Screens(
        boxes=edges.reshape(-1, 4).T.copy(),
        value=np.array([meeting.growth.value for _, meeting in flat], float),
        metres=np.array([meeting.growth.metres for _, meeting in flat], float),
        negative=np.array([meeting.negative for _, meeting in flat], bool),
        meetings=_rounds(
            total, [(number, place) for place, (number, _) in enumerate(flat)]
        ),
        filters=tuple(filters),
        filtered=_rounds(total, filtered),
        key=key,
        ids=Sought(pa.array(list(ids), pa.string())),
    )


def _rounds(total: int, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, ...]:
    """Pairs of a query and a place, dealt into columns that have one per query."""
    rounds: list[np.ndarray] = []
    count: dict[int, int] = {}
    for number, place in pairs:
        at = count[number] = count.get(number, -1) + 1
        if at == len(rounds):
            rounds.append(np.full(total, -1, np.int32))
        rounds[at][number] = place
    return tuple(rounds)


def unfiltered(
    screens: Screens,
    asked: Asked,
    point: np.ndarray,
    query: np.ndarray,
) -> np.ndarray:
    """Whether pairs of a point and a query satisfy the query's screen, but for filters; bool[p].

    Args:
        screens: those of all queries.
        asked: the points.
        point: int64[p], places of points.
        query: int64[p], numbers of queries.
    """
    keep = np.ones(len(point), bool)
    if len(screens.ids):
        keep &= _keyed(screens, asked, point, query)
    if screens.meetings and len(point):
        # Once for all points, and only where some box grows by metres.
        scale = asked.space.scale(asked.readings.y) if screens.metres.any() else None
        for start in range(0, len(point), _MOST_PAIRS):
            part = slice(start, start + _MOST_PAIRS)
            for places in screens.meetings:
                _meet(
                    screens, asked, scale, places[query[part]], point[part], keep[part]
                )
    return keep


def filtered(
    screens: Screens,
    asked: Asked,
    point: np.ndarray,
    query: np.ndarray,
    features: Features | None = None,
) -> np.ndarray:
    """Whether the filters of queries let pairs of a point and a query through, which satisfy all else; bool[p].

    Args:
        screens: those of all queries.
        asked: the points.
        point: int64[p], places of points.
        query: int64[p], numbers of queries.
        features: of pairs that are joined: the n-th pair is one of the n-th feature.
    """
    keep = np.ones(len(point), bool)
    for places in screens.filtered:
        held = np.flatnonzero(keep)
        for number, at in _grouped(places[query[held]]):
            of = held[at]
            chosen = None if features is None else features.take(of)
            keep[of] = _let_through(screens.filters[number], asked, point[of], chosen)
    return keep


def passes(
    screens: Screens, asked: Asked, point: np.ndarray, query: np.ndarray
) -> np.ndarray:
    """Whether pairs of a point and a query satisfy all of the query's screen; bool[p]. Arguments as of `unfiltered`."""
    keep = unfiltered(screens, asked, point, query)
    keep[keep] = filtered(screens, asked, point[keep], query[keep])
    return keep


def objects_of(screens: Screens, objects: Interner) -> np.ndarray:
    """The number of the object that each query is about; int64[q].

    Args:
        screens: those of all queries.
        objects: all objects that are known.

    Returns:
        -1 for a query that is about any, -2 for one whose object never reported.
    """
    places = objects.places_of(screens.ids)
    wanted: np.ndarray = np.append(np.where(places < 0, -2, places), -1)[screens.key]
    return wanted


def _keyed(
    screens: Screens, asked: Asked, point: np.ndarray, query: np.ndarray
) -> np.ndarray:
    wanted = objects_of(screens, asked.objects)[query]
    keep: np.ndarray = (wanted == -1) | (wanted == asked.readings.object[point])
    return keep


def _meet(
    screens: Screens,
    asked: Asked,
    scale: tuple[np.ndarray, np.ndarray] | None,
    place: np.ndarray,
    point: np.ndarray,
    keep: np.ndarray,
) -> None:
    """Takes out of `keep` the pairs whose box does not meet what it must, or meets what it must not."""
    held = np.flatnonzero(keep & (place >= 0))
    if not len(held):
        return
    if len(held) < len(keep):
        place, point = place[held], point[held]
    value = screens.value.take(place)
    if scale is None:
        half = value / 2, value / 2
    else:
        half = half_sides(
            value,
            screens.metres.take(place),
            (scale[0].take(point), scale[1].take(point)),
        )
    boxes, x, y = (
        screens.boxes.take(place, axis=1),
        asked.readings.x.take(point),
        asked.readings.y.take(point),
    )
    meets_box = meets(boxes, half, x, y)
    # A box that reaches over 180 degrees is held against the others once more, a turn away.
    beyond = asked.space.reaching_across(x, half[0])
    if len(beyond):
        sides = half[0][beyond], half[1][beyond]
        meets_box[beyond] |= meets(
            boxes.take(beyond, axis=1), sides, turned(x[beyond]), y[beyond]
        )
    keep[held] = meets_box != screens.negative.take(place)


def _grouped(numbers: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The numbers from 0 on that occur, each with its places."""
    order = np.argsort(numbers, kind="stable")
    # -1, which is none, sorts first.
    order = order[int(np.count_nonzero(numbers < 0)) :]
    starts = firsts(numbers[order])
    for start, end in zip(starts, [*starts[1:], len(order)], strict=False):
        yield int(numbers[order[start]]), order[start:end]


def _let_through(
    one: Filtering, asked: Asked, point: np.ndarray, features: Features | None
) -> np.ndarray:
    """What a filter says of pairs; without features each fix is asked about once."""
    by = filter_called(one.name)
    if isinstance(by, UserFilter):
        by.require(joins=features is not None)
    if features is not None:
        chosen = replace(features, within=one.within)
        if isinstance(by, UserFilter) or one.name in WHOLE:
            chosen = replace(chosen, rows=features.layer.rows(features.feature))
            if chosen.rows is None:
                return np.zeros(len(point), bool)  # of a layer that cannot be read

        def of_pairs(rows: np.ndarray) -> np.ndarray:
            fixes = _fixes(one, asked, point[rows])
            return by.filter_pairs(fixes, chosen.take(rows), one.text)

        return _judged(one, by, of_pairs, _Rows(asked, point, chosen))
    # A filter is asked once about a fix, however many queries name it.
    points, at = np.unique(point, return_inverse=True)

    def of_fixes(rows: np.ndarray) -> np.ndarray:
        return by.filter_fixes(_fixes(one, asked, points[rows]), one.text)

    return _judged(one, by, of_fixes, _Rows(asked, points))[at]


class _Rows(NamedTuple):
    """What a filter is asked about: points, each beside its feature where they are joined."""

    asked: Asked
    point: np.ndarray
    features: Features | None = None

    def in_words(self, row: int) -> str:
        """One of them, for people."""
        readings = self.asked.readings
        place = int(self.point[row])
        name = self.asked.objects.ids[int(readings.object[place])].as_py()
        instant = np.datetime64(int(readings.ts[place]), "us")
        words = f"object {name} at {instant}Z"
        if self.features is None:
            return words
        fid = self.features.layer.values("fid")[int(self.features.feature[row])]
        return f"{words} and feature {fid.as_py()}"


def _judged(
    one: Filtering,
    by: Filter | UserFilter,
    judge: Callable[[np.ndarray], np.ndarray],
    of: _Rows,
) -> np.ndarray:
    """What a filter says; a row for which it raises does not pass, and that is noted."""
    total, raised, rows_raised = len(of.point), list[Exception](), list[int]()

    def checked(rows: np.ndarray) -> np.ndarray:
        try:
            return _checked(np.asarray(judge(rows)), len(rows))
        except Exception:
            rows_raised[len(rows_raised) :] = rows.tolist() if len(rows) == 1 else ()
            raise

    def all_rows() -> np.ndarray:
        return each_alone(checked, total, raised)

    if not isinstance(by, UserFilter):
        passed = all_rows()
    else:
        try:
            passed = by.limited(all_rows, one.text)
        except OverrunError:
            late = f"takes longer than limit_s = {by.settings.limit_s:g} for {total} rows, the first {of.in_words(0)}"
            _note_failure(one, by, late, TimeoutError(late))
            return np.zeros(total, bool)
    if raised:
        error = raised[0]
        why = f"fails: {type(error).__name__}: {' '.join(str(error).split())}"
        rows = f"{of.in_words(rows_raised[0])}, {len(raised)} of {total} rows"
        _note_failure(one, by, f"{why} ({rows})", error)
    return passed


def _checked(passes: np.ndarray, total: int) -> np.ndarray:
    if passes.dtype != np.bool_ or passes.shape != (total,):
        raise TypeError(
            f"it gives {passes.dtype}{list(passes.shape)} for {total} rows, not a bool for each"
        )
    return passes


def _note_failure(
    one: Filtering, by: Filter | UserFilter, why: str, error: Exception
) -> None:
    path = f" ({by.settings.class_})" if isinstance(by, UserFilter) else ""
    value = "" if one.text is None else f" with {one.text!r}"
    text = f"filter {one.name}{path}{value} {why}"
    note(("filter", one.name, one.text or ""), text, error)


def _fixes(one: Filtering, asked: Asked, point: np.ndarray) -> Fixes:
    readings = asked.readings.take(point)
    half_x, half_y = one.growth.half_sides(readings.y, space=asked.space)
    return Fixes(
        readings=readings,
        ids=asked.objects.ids,
        space=asked.space,
        half_x=half_x,
        half_y=half_y,
    )


@lru_cache(maxsize=1024)
def _alone(steps: Steps) -> Screens:
    """The screens of one query, whose number is 0: ticks ask for the same ones again and again.

    They have no key: what a process keeps for all runs knows no hashes of ids.
    """
    return compile_screens(1, {0: steps}, {0: steps.meetings})


def satisfied(steps: Steps, asked: Asked) -> np.ndarray:
    """Which of the points satisfy the steps of one query without a join; bool[n].

    Args:
        steps: those of the query.
        asked: n points.
    """
    satisfies, points = np.zeros(len(asked.readings), bool), _of_key(steps, asked)
    screens = _alone(replace(steps, keys=()))
    first = np.zeros(len(points), np.int64)
    satisfies[points] = passes(screens, asked, points, first)
    return satisfies


def _of_key(steps: Steps, asked: Asked) -> np.ndarray:
    """The points of the object that the steps of a query name; all of them where they name none."""
    total = len(asked.readings)
    if not steps.keys:
        return np.arange(total)
    if len(steps.keys) > 1:
        return np.arange(0)
    wanted = asked.objects.number_of(steps.keys[0])
    return np.flatnonzero(asked.readings.object == wanted)
