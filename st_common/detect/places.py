"""Which columns hold the place of a fix: by their names, and by their values where names do not say it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from st_common.detect.degrees import (
    Numbers,
    halves_in,
    has_commas,
    lettered_in,
    numbers_of,
    pair_in,
    written_in,
)
from st_common.detect.rows import Rows
from st_common.detect.words import axis_of, is_end, words_of
from st_common.errors import ConfigError

_POINT = re.compile(
    r"\s*(SRID=\d+;)?\s*POINT\s*(Z|M|ZM)?\s*(\(|EMPTY)"
    r"|(00000000|0101000000)[0-9A-F]{2,}$|(0020000001|0101000020)[0-9A-F]{10,}$|(00|01)(000003E9|E9030000)[0-9A-F]+$"
    r"|\s*\{\s*\"type\"\s*:\s*\"Point\"",
    re.IGNORECASE,
)
_SHAPE = re.compile(
    r"\s*(SRID=\d+;)?\s*(MULTI)?(POINT|LINESTRING|POLYGON|GEOMETRYCOLLECTION)\s*(Z|M|ZM)?\s*(\(|EMPTY)"
    r"|(00000000|01)0[1-7]000000[0-9A-F]{16,}$|\s*\{\s*\"type\"\s*:\s*\"(Multi)?(Point|LineString|Polygon)\"",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"[-+]?\d+[.,](?P<behind>\d+)")
_NOT_THERE = {"x": 181.0, "y": 91.0}
_POLAR = 75.0  # degrees: hardly anything moves nearer to a pole
_MOST_X, _MOST_Y, _LEAST_DECIMALS = 180.0, 90.0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where fixes are.

    Attributes:
        columns: `x` and `y`, or `place`, or `shape`; empty: no column looks so.
        crs: "EPSG:4326", or "planar" where numbers are no degrees.
        settings: other keys that they need.
        notes: what people should look at.
        x: the first coordinate of each record; NaN where it has none, empty where nobody has looked.
        y: the second one.
    """

    columns: Mapping[str, str | list[str]] = field(default_factory=dict)
    crs: str = "EPSG:4326"
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    x: Numbers = field(default_factory=lambda: np.zeros(0))
    y: Numbers = field(default_factory=lambda: np.zeros(0))


def places_in(names: Sequence[str], rows: Rows, named: Mapping[str, str]) -> Places:
    """The columns of places.

    Args:
        names: of all columns.
        rows: some records.
        named: columns that somebody has named: `x`, `y`, `place`, `shape`.

    Raises:
        ConfigError: a record has two places, the beginning of a trip and its end.
    """
    given = {key: named[key] for key in ("x", "y", "place", "shape") if key in named}
    if {"place", "shape"} & given.keys():
        return Places(columns=given)
    if not given and (geometry := _geometry(names, rows)):
        return Places(columns=geometry)
    pair = _given_pair(given, names) or _by_name(names)
    if pair is not None:
        is_given = {"x", "y"} <= given.keys()
        return _with_halves(_judged(*pair, rows, is_given=is_given), names, rows)
    if given:
        return Places(columns=given)
    if (both := pair_in(names, rows)) is not None:
        name, settings, note = both
        return Places(
            columns={"place": name}, settings=settings, notes=(note,) if note else ()
        )
    return _with_halves(_by_values(names, rows), names, rows)


def _with_halves(places: Places, names: Sequence[str], rows: Rows) -> Places:
    """The places with the columns of their hemispheres: E or W, N or S; a minus sign says it alone."""
    columns: dict[str, str | list[str]] = dict(places.columns)
    for axis, numbers in (("x", places.x), ("y", places.y)):
        half = halves_in(names, rows, axis)
        if axis in columns and half is not None and not (numbers < 0).any():
            columns[axis] = [str(columns[axis]), half]
    return replace(places, columns=columns)


def _geometry(names: Sequence[str], rows: Rows) -> dict[str, str]:
    """The first column whose values are all points, or all geometries."""
    for key, pattern in (("place", _POINT), ("shape", _SHAPE)):
        for name in names:
            values = [one for row in rows if (one := row.get(name))]
            if values and all(map(pattern.match, values)):
                return {key: name}
    return {}


def _given_pair(
    given: Mapping[str, str], names: Sequence[str]
) -> tuple[str, str] | None:
    """The pair of which somebody has named both, or one, with the other by its name."""
    if not given:
        return None
    found = _by_name(names)
    other = {} if found is None else {"x": found[0], "y": found[1]}
    pair = {**other, **given}
    return (pair["x"], pair["y"]) if {"x", "y"} <= pair.keys() else None


def _by_name(names: Sequence[str]) -> tuple[str, str] | None:
    """The columns called as x and y that belong together: `lon` and `lat`, `start_lon` and `start_lat`.

    Raises:
        ConfigError: all of them are where trips begin and end.
    """
    axes = {name: axis for name in names if (axis := axis_of(name)) is not None}
    on = {side: [n for n, (s, _) in axes.items() if s == side] for side in ("x", "y")}
    pairs = sorted(product(on["x"], on["y"]), key=lambda pair: _distance(axes, *pair))
    if not pairs:
        return None
    x, y = pairs[0]
    if is_end(axes[x][1] | axes[y][1] | _inside(x)) and len(pairs) > 1:
        raise ConfigError(
            f"each record has two places: {', '.join(axes)}",
            hint="fixes have one: write each trip as two lines, as with "
            "duckdb -c \"COPY (SELECT id, start_time AS time, start_lon AS lon, start_lat AS lat FROM 'FILE' UNION ALL "
            "SELECT id, end_time, end_lon, end_lat FROM 'FILE') TO 'fixes.csv'\"",
        )
    return x, y


def _inside(name: str) -> frozenset[str]:
    """The words of what a path stands in: those of `from` for `from.lat`."""
    return frozenset(words_of(name.rpartition(".")[0]).split("_"))


def _distance(
    axes: Mapping[str, tuple[str, frozenset[str]]], x: str, y: str
) -> tuple[int, int, int, int]:
    """How far two columns are from being a pair: by their other words, and by their paths."""
    words_x, words_y = axes[x][1], axes[y][1]
    same_path = x.rpartition(".")[0] == y.rpartition(".")[0]
    order = list(axes)
    return (
        len(words_x ^ words_y) + 2 * (not same_path),
        len(words_x | words_y),
        sum(words_of(one) in ("x", "y") for one in (x, y)),
        abs(order.index(x) - order.index(y)),
    )


def _judged(x: str, y: str, rows: Rows, *, is_given: bool) -> Places:
    """The places of two columns, by their values: exchanged where they must be, and in which system."""
    plain = {words_of(one) for one in (x, y)} <= {"x", "y", "easting", "northing"}
    written = written_in(rows, x, y, may_be_scaled=not plain)
    of_x, of_y = written.x, written.y
    far_x, far_y = _known(of_x, "x"), _known(of_y, "y")
    notes = list(written.notes)
    beyond = far_y > _MOST_Y
    is_swapped = len(far_y) > 0 and 2 * beyond.sum() > len(far_y)
    is_swapped &= bool((far_y <= _MOST_X).all() and (far_x <= _MOST_Y).all())
    if is_swapped and not is_given:
        notes.append(
            f"{x} and {y} look exchanged: {y} reaches {far_y.max():g}; also fits: --x {x} --y {y}"
        )
        x, y, of_x, of_y = y, x, of_y, of_x
    reach = [_reach(far_x), _reach(far_y)]
    crs = "EPSG:4326"
    if max(reach) > _MOST_X:
        crs = "planar"
        notes.append(
            f"{x} reaches {reach[0]:g} and {y} {reach[1]:g}: projected; put its EPSG number for planar"
        )
    elif words_of(x) == "x" and words_of(y) == "y":
        notes.append(
            f'{x} and {y} are taken for degrees; also fits: crs = "planar", a plane'
        )
    return Places(
        columns={"x": x, "y": y},
        crs=crs,
        settings=written.settings,
        notes=tuple(notes),
        x=of_x,
        y=of_y,
    )


def _known(numbers: Numbers, axis: str) -> Numbers:
    """How far coordinates go from 0, without those that stand for none (91, 181)."""
    far = np.abs(numbers[np.isfinite(numbers)])
    return np.asarray(far[far != _NOT_THERE[axis]], np.float64)


def _reach(far: Numbers) -> float:
    """How far they go but for one in ten, which may stand for no value; 0 without any."""
    return float(np.sort(far)[len(far) * 9 // 10]) if len(far) else 0.0


def _by_values(names: Sequence[str], rows: Rows) -> Places:
    """Two columns whose values are degrees with decimals: with many of them, and side by side, if there are such."""
    x, y = (lettered_in(names, rows, axis) for axis in ("x", "y"))
    if x is not None and y is not None:
        return _judged(x, y, rows, is_given=True)
    columns = {name: numbers_of(rows, name) for name in names}
    fine = {name: _fineness(rows, name, columns[name]) for name in names}
    able = [name for name in names if fine[name]]
    pairs = [pair for pair in _side_by_side(names, able) if _fit(*pair, columns)]
    pairs.sort(key=lambda pair: -min(fine[pair[0]], fine[pair[1]]))
    if not pairs:
        return Places()
    best, *others = pairs
    grade = min(fine[one] for one in best)
    told = [pair for pair in others if min(fine[one] for one in pair) == grade]
    return _ordered(*best, columns, told, rows)


def _fit(first: str, second: str, columns: Mapping[str, Numbers]) -> bool:
    """Whether one of two columns can be a longitude and the other a latitude."""
    far = [_furthest(columns[one]) for one in (first, second)]
    return max(far) <= _MOST_X and min(far) <= _MOST_Y


def _furthest(numbers: Numbers) -> float:
    return float(np.nanmax(np.abs(numbers)))


def _ordered(
    first: str,
    second: str,
    columns: Mapping[str, Numbers],
    others: Sequence[tuple[str, str]],
    rows: Rows,
) -> Places:
    """Which of two columns is the longitude: what reaches beyond 90; where neither does, both readings are told."""
    far = [_furthest(columns[one]) for one in (first, second)]
    is_first = far[0] > _MOST_Y or (far[0] > _POLAR > far[1] and far[1] <= _MOST_Y)
    x, y = (first, second) if is_first else (second, first)
    also = [(y, x)] if max(far) <= _MOST_Y else []
    fit = "".join(f"; also fits: --x {a} --y {b}" for a, b in [*also, *others[:2]])
    how = f"{y} and {x} are taken for latitude and longitude by their values{fit}"
    return Places(
        columns={"x": x, "y": y},
        settings={"decimal": ","} if has_commas(rows, (x, y)) else {},
        notes=(how,),
        x=columns[x],
        y=columns[y],
    )


def _fineness(rows: Rows, name: str, numbers: Numbers) -> int:
    """How much values look like degrees: 2 with many decimals, 1 with some, 0 not."""
    known = [text for row in rows if (text := row.get(name, "").strip())]
    if not known or np.isfinite(numbers).sum() < len(known) * 0.9:
        return 0
    if _furthest(numbers) > _MOST_X:
        return 0
    decimals = [one for one in known if _DECIMAL.fullmatch(one)]
    digits = (len(re.split("[.,]", one)[1]) for one in decimals)
    many = [one for one in digits if one >= _LEAST_DECIMALS]
    return (2 * len(many) >= len(known)) + (2 * len(decimals) >= len(known))


def _side_by_side(
    names: Sequence[str], able: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of columns, those next to each other first."""
    at = {name: place for place, name in enumerate(names)}
    pairs = [(a, b) for a in able for b in able if at[a] < at[b]]
    yield from sorted(pairs, key=lambda pair: (at[pair[1]] - at[pair[0]], at[pair[0]]))
