"""The nine BerlinMOD queries by brute force: NumPy and PROJ over all fixes, nothing of Fairway.

Each cell is a list of rows. A snapshot at a tick is the answer over all fixes up to it; a window holds the fixes from
its beginning to before its end.
"""

from collections import defaultdict
from typing import Any

import numpy as np
from pyproj import Geod

from bench.berlinmod9_corpus import CENTRE, PLACES, SPAN_MS, TICK_MS, WINDOW_MS, Fixes

_EARTH = Geod(ellps="WGS84")
_BOX = (4.30, 50.84, 4.36, 50.86)
_SEGMENT = ((4.30, 50.83), (4.36, 50.87))
_PIECES, _MET_M, _DOUBT_M = 2_000, 5_000.0, 0.05
Rows = list[tuple[Any, ...]]


def brute_force(fixes: Fixes) -> dict[str, Rows]:
    """The rows of all cells, by cell."""
    near = _metres(fixes.lon, fixes.lat, *CENTRE) <= _MET_M
    left, low, right, high = _BOX
    box = (
        (fixes.lon >= left)
        & (fixes.lon <= right)
        & (fixes.lat >= low)
        & (fixes.lat <= high)
    )
    everywhere = np.ones(len(near), bool)
    return {
        **_members(fixes, "Q1", everywhere),
        **_target(fixes),
        **_members(fixes, "Q3", near),
        **_entries(fixes, box),
        **_meetings(fixes, near),
        **_ways(fixes),
        **_passages(fixes),
        **_members(fixes, "Q8", _along(fixes)),
        **_apart(fixes),
        "Q1-continuous": [
            (fixes.ids[v], v * fixes.step_ms) for v in range(fixes.vehicles)
        ],
    }


def _metres(lon: Any, lat: Any, to_lon: Any, to_lat: Any) -> np.ndarray:
    """Geodesic distances on WGS84."""
    lon, lat, to_lon, to_lat = np.broadcast_arrays(lon, lat, to_lon, to_lat)
    metres: np.ndarray = np.asarray(_EARTH.inv(lon, lat, to_lon, to_lat)[2])
    return metres


def _along(fixes: Fixes) -> np.ndarray:
    """Whether each fix is within 5 km of the segment, whose points are looked at one by one.

    Raises:
        ValueError: a fix is so near to the border that the points between those would decide.
    """
    share = np.linspace(0, 1, _PIECES + 1)
    (x0, y0), (x1, y1) = _SEGMENT
    least = np.array(
        [
            _metres(x0 + share * (x1 - x0), y0 + share * (y1 - y0), x, y).min()
            for x, y in zip(fixes.lon, fixes.lat, strict=True)
        ]
    )
    if (np.abs(least - _MET_M) < _DOUBT_M).any():
        raise ValueError("a fix is on the border of the corridor")
    within: np.ndarray = least <= _MET_M
    return within


def _last_before(fixes: Fixes, ms: int, *, with_it: bool) -> list[int]:
    """The place of each vehicle's last fix before a time, or up to it."""
    end = int(np.searchsorted(fixes.ms, ms, side="right" if with_it else "left"))
    return list(
        {
            int(fixes.vehicle[n]): n for n in range(max(0, end - fixes.vehicles), end)
        }.values()
    )


def _ticks() -> range:
    return range(TICK_MS, SPAN_MS + 1, TICK_MS)


def _members(fixes: Fixes, query: str, qualifies: np.ndarray) -> dict[str, Rows]:
    """Fixes that qualify; how many vehicles have one in a window; whose last fix does at a tick."""
    ids, windows = fixes.ids, defaultdict(set)
    at = np.flatnonzero(qualifies).tolist()
    for n in at:
        windows[int(fixes.ms[n]) // WINDOW_MS].add(fixes.vehicle[n])
    return {
        f"{query}-continuous": [(ids[fixes.vehicle[n]], int(fixes.ms[n])) for n in at],
        f"{query}-windowed": [(part, len(those)) for part, those in windows.items()],
        f"{query}-snapshot": [
            (tick, ids[fixes.vehicle[n]])
            for tick in _ticks()
            for n in _last_before(fixes, tick, with_it=True)
            if qualifies[n]
        ],
    }


def _target(fixes: Fixes) -> dict[str, Rows]:
    """Where one vehicle is."""
    own = np.flatnonzero(fixes.vehicle == fixes.vehicles // 2)
    places = list(zip(fixes.lon.tolist(), fixes.lat.tolist(), strict=True))
    ms = fixes.ms[own]
    last = {int(t) // WINDOW_MS: n for n, t in zip(own, ms, strict=True)}
    return {
        "Q2-continuous": [(int(fixes.ms[n]), *places[n]) for n in own],
        "Q2-windowed": [(part, *places[n]) for part, n in last.items()],
        "Q2-snapshot": [
            (tick, *places[own[np.searchsorted(ms, tick, side="right") - 1]])
            for tick in _ticks()
        ],
    }


def _entries(fixes: Fixes, box: np.ndarray) -> dict[str, Rows]:
    """When vehicles came into a box; in a window also those who are in by its first fix."""
    came, windows = list[tuple[str, int]](), Rows()
    for vehicle, name in enumerate(fixes.ids):
        own = np.flatnonzero(fixes.vehicle == vehicle)
        was_in, before = False, -1
        for n in own.tolist():
            t = int(fixes.ms[n])
            part = t // WINDOW_MS
            if box[n] and not was_in:
                came.append((name, t))
            if box[n] and (not was_in or part != before):
                windows.append((part, name, t))
            was_in, before = bool(box[n]), part
    return {
        "Q4-continuous": list(came),
        "Q4-windowed": windows,
        "Q4-snapshot": [
            (tick, *one) for tick in _ticks() for one in came if one[1] <= tick
        ],
    }


def _meetings(fixes: Fixes, near: np.ndarray) -> dict[str, Rows]:
    """Pairs of vehicles near the centre and each other: behind each fix, by the last fixes of a window, at ticks."""
    size, counts = fixes.vehicles, Rows()
    is_near, are_met = np.zeros(size, bool), np.zeros((size, size), bool)
    lon, lat, seen = np.zeros(size), np.zeros(size), np.zeros(size, bool)
    for n, vehicle in enumerate(fixes.vehicle.tolist()):
        lon[vehicle], lat[vehicle], seen[vehicle] = fixes.lon[n], fixes.lat[n], True
        is_near[vehicle] = near[n]
        met = seen & (_metres(lon, lat, lon[vehicle], lat[vehicle]) <= _MET_M)
        met[vehicle] = False
        are_met[vehicle], are_met[:, vehicle] = met, met
        pairs = int((are_met & is_near & is_near[:, None]).sum()) // 2
        counts += [(int(fixes.ms[n]), pairs)] if pairs else []
    ends = range(WINDOW_MS, SPAN_MS + 1, WINDOW_MS)
    return {
        "Q5-continuous": counts,
        "Q5-windowed": [
            (end // WINDOW_MS - 1, *pair)
            for end in ends
            for pair in _met(fixes, near, _last_before(fixes, end, with_it=False))
        ],
        "Q5-snapshot": [
            (tick, *pair)
            for tick in _ticks()
            for pair in _met(fixes, near, _last_before(fixes, tick, with_it=True))
        ],
    }


def _met(fixes: Fixes, near: np.ndarray, at: list[int]) -> list[tuple[str, str]]:
    """The pairs among some fixes."""
    those = np.array(
        sorted((n for n in at if near[n]), key=lambda n: fixes.vehicle[n]), np.int64
    )
    lon, lat, ids = fixes.lon[those], fixes.lat[those], fixes.ids
    apart = _metres(lon[:, None], lat[:, None], lon, lat)
    pairs = np.argwhere(np.triu(apart <= _MET_M, k=1))
    return [
        (ids[fixes.vehicle[those[i]]], ids[fixes.vehicle[those[j]]]) for i, j in pairs
    ]


def _ways(fixes: Fixes) -> dict[str, Rows]:
    """How far each vehicle has come, at each fix, behind the last of a window, and at ticks."""
    came_m = np.zeros(len(fixes.ms))
    for vehicle in range(fixes.vehicles):
        own = np.flatnonzero(fixes.vehicle == vehicle)
        lon, lat = fixes.lon[own], fixes.lat[own]
        came_m[own[1:]] = np.cumsum(_metres(lon[:-1], lat[:-1], lon[1:], lat[1:]))
    names = [fixes.ids[vehicle] for vehicle in fixes.vehicle]
    said = list(zip(names, fixes.ms.tolist(), came_m.tolist(), strict=True))
    windows = {(t // WINDOW_MS, name): metres for name, t, metres in said}
    return {
        "Q6-continuous": said,
        "Q6-windowed": [(*key, metres) for key, metres in windows.items()],
        "Q6-snapshot": [
            (tick, names[n], float(came_m[n]))
            for tick in _ticks()
            for n in _last_before(fixes, tick, with_it=True)
        ],
    }


def _passages(fixes: Fixes) -> dict[str, Rows]:
    """When each vehicle was first near a place, and in each window."""
    ids = fixes.ids
    firsts, windows = dict[tuple[str, str], int](), dict[tuple[int, str, str], int]()
    for name, lon, lat, metres in PLACES:
        for n in np.flatnonzero(
            _metres(fixes.lon, fixes.lat, lon, lat) <= metres
        ).tolist():
            key, t = (f"poi{name}", ids[fixes.vehicle[n]]), int(fixes.ms[n])
            firsts.setdefault(key, t)
            windows.setdefault((t // WINDOW_MS, *key), t)
    return {
        "Q7-continuous": [(*key, t) for key, t in firsts.items()],
        "Q7-windowed": [(*key, t) for key, t in windows.items()],
        "Q7-snapshot": [
            (tick, *key, t)
            for tick in _ticks()
            for key, t in firsts.items()
            if t <= tick
        ],
    }


def _apart(fixes: Fixes) -> dict[str, Rows]:
    """How far two vehicles are apart, whenever one of them reports."""
    two = (0, fixes.vehicles // 2)
    places, said = dict[int, tuple[float, float]](), Rows()
    for n in np.flatnonzero(np.isin(fixes.vehicle, two)).tolist():
        places[int(fixes.vehicle[n])] = (fixes.lon[n], fixes.lat[n])
        if len(places) == len(two):
            said.append(
                (int(fixes.ms[n]), float(_metres(*places[two[0]], *places[two[1]])))
            )
    times = [t for t, _ in said]
    at_tick = [
        (tick, said[int(np.searchsorted(times, tick, side="right")) - 1][1])
        for tick in _ticks()
    ]
    return {
        "Q9-continuous": said,
        "Q9-windowed": list(
            {t // WINDOW_MS: (t // WINDOW_MS, metres) for t, metres in said}.values()
        ),
        "Q9-snapshot": at_tick,
    }
