"""The places of lines: columns of longitude and latitude, or one of geometries, found as those of streams are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from st_common.decode.degrees import coordinates_of, with_point
from st_common.decode.pairs import pairs_of
from st_common.decode.points import as_one
from st_common.decode.shapes import geometries_of
from st_common.detect.places import Places, places_in
from st_common.errors import ConfigError, LayerError
from st_common.formats.format_settings import parts
from st_common.formats.numbers import Parsed, doubles, is_missing
from st_common.layers.lines import Lines
from st_common.layers.options import FileOptions

DEGREES = "EPSG:4326"
_STOPS = ("stop_id", "stop_lon", "stop_lat")
_SAMPLE = 700  # lines at the beginning, in the middle and at the end
Ints = npt.NDArray[np.int64]
Geometries = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The geometry of each line, why it has none ("" where it has one), the system, and what was found out."""

    geometries: Geometries
    why: npt.NDArray[np.object_]
    crs: str | None
    used: frozenset[str]
    notes: list[str] = field(default_factory=list)


def placed(
    lines: Lines,
    options: FileOptions,
    file: Path,
    target: str | None,
) -> Placed:
    """The geometries of all lines.

    Args:
        lines: of the file.
        options: which columns hold the place, and in which system; else they are found.
        file: names the file in errors.
        target: the system of the layer, which an SRID may say.

    Raises:
        LayerError: no column holds places, a named one is not there, or all SRIDs are of another system.
    """
    names = list(lines.columns)
    named = dict(options.columns)
    for name in named.values():
        if name not in names:
            raise LayerError(
                f"{file} has no column {name!r}", hint=f"it has {', '.join(names)}"
            )
    if not named and set(_STOPS) <= set(names):
        named = {"x": _STOPS[1], "y": _STOPS[2]}
    places = _places(lines, names, named, file)
    notes = [f"places are those of {_named(places)}"]
    notes += [f"they are read with {k} = {v!r}" for k, v in places.settings.items()]
    notes += places.notes
    held = places.columns.get("shape") or places.columns.get("place")
    if held is not None:
        values = lines.columns[str(held)]
        return _of_geometry(values, places, notes, options, file, target)
    return _of_numbers(lines.columns, places, notes)


def _named(places: Places) -> str:
    names = [name for one in places.columns.values() for name in parts(_column(one))]
    return " and ".join(dict.fromkeys(names))


def _column(value: str | list[str]) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else tuple(value)


def _places(
    lines: Lines, names: Sequence[str], named: Mapping[str, str], file: Path
) -> Places:
    """Which columns hold the place, by the first lines, those in the middle and the last ones."""
    count = len(lines)
    starts = sorted({0, max(0, count // 2 - _SAMPLE // 2), max(0, count - _SAMPLE)})
    table = pa.table(dict(lines.columns))
    rows = [
        {name: value or "" for name, value in row.items()}
        for start in starts
        for row in table.slice(start, _SAMPLE).to_pylist()
    ]
    try:
        places = places_in(names, rows, named)
    except ConfigError as error:
        raise LayerError(f"{file}: {error.message}", hint=error.hint) from None
    keys = places.columns.keys()
    if {"x", "y"} <= keys or {"place", "shape"} & keys:
        return places
    if (name := _mostly_geometry(lines.columns)) is not None:
        return Places(columns={"shape": name})
    raise LayerError(
        f"{file}: no column looks like a place",
        hint=f"it has {', '.join(names)}: --x and --y name those of longitude and latitude, --place one of WKT",
    )


def _mostly_geometry(columns: Mapping[str, pa.Array]) -> str | None:
    """The first column of which more than half is geometries: the others are rejects, and named."""
    for name, values in columns.items():
        known = values.filter(pa.array(~is_missing(values))).slice(0, _SAMPLE)
        if 2 * (~shapely.is_missing(geometries_of(known))).sum() > len(known):
            return name
    return None


def _of_numbers(
    columns: Mapping[str, pa.Array], places: Places, notes: list[str]
) -> Placed:
    """Points of two columns; a coordinate may have its hemisphere in a third."""
    named = {axis: _column(places.columns[axis]) for axis in ("x", "y")}
    parsed = [
        _coordinates(as_one(columns, named[axis], between=" "), axis, places)
        for axis in ("x", "y")
    ]
    missing = parsed[0].missing | parsed[1].missing
    bad = (parsed[0].bad | parsed[1].bad) & ~missing
    coordinates = np.column_stack([one.values for one in parsed])
    bad |= ~missing & ~np.isfinite(coordinates).all(axis=1)
    why = np.full(len(coordinates), "", object)
    why[missing] = "no_geometry"
    why[bad] = "bad_number"
    geometries = np.full(len(coordinates), None, object)
    geometries[why == ""] = shapely.points(coordinates[why == ""])
    return Placed(
        geometries=geometries,
        why=why,
        crs=DEGREES if places.crs == DEGREES else None,
        used=frozenset((*parts(named["x"]), *parts(named["y"]))),
        notes=notes,
    )


def _coordinates(values: pa.Array, axis: str, places: Places) -> Parsed:
    plain = with_point(values, places.settings.get("decimal", "."))
    if places.crs != DEGREES:
        return doubles(plain)
    return coordinates_of(plain, axis, places.settings.get("coordinates", "degrees"))


def _of_geometry(
    values: pa.Array,
    places: Places,
    notes: list[str],
    options: FileOptions,
    file: Path,
    target: str | None,
) -> Placed:
    """The geometries of one column, and the system that its SRIDs say; also points as two numbers."""
    column = _named(places)
    geometries = geometries_of(values)
    _take_pairs(geometries, values, places)
    srid = shapely.get_srid(geometries).astype(np.int64)
    said = _said_srid(srid, options.crs, target, column, file)
    why = np.full(len(values), "", object)
    why[(srid > 0) & (srid != said)] = "other_crs"
    why[shapely.is_missing(geometries)] = "bad_geometry"
    why[is_missing(values)] = "no_geometry"
    flat = shapely.force_2d(shapely.set_srid(geometries, 0))
    return Placed(
        geometries=flat,
        why=why,
        crs=f"EPSG:{said}" if said else DEGREES,
        used=frozenset((column,)),
        notes=notes,
    )


def _take_pairs(geometries: Geometries, values: pa.Array, places: Places) -> None:
    """Puts points where texts are no geometries, but two numbers."""
    rows = np.flatnonzero(shapely.is_missing(geometries) & ~is_missing(values))
    if not len(rows):
        return
    x, y = pairs_of(
        values.take(pa.array(rows)),
        order=places.settings.get("place_order"),
        decimal=places.settings.get("decimal", "."),
    )
    good = ~(x.bad | y.bad)
    geometries[rows[good]] = shapely.points(x.values[good], y.values[good])


def _said_srid(
    srid: Ints, source: str | None, target: str | None, column: str, file: Path
) -> int:
    """The SRID of a column that is that of the file or of the layer; 0: it has none.

    Raises:
        LayerError: the column has SRIDs, and none of them is.
    """
    told, times = np.unique(srid[srid > 0], return_counts=True)
    if not len(told):
        return 0
    own = (
        source
        or (target if target in {f"EPSG:{one}" for one in told} else None)
        or DEGREES
    )
    accepted = {f"EPSG:{one}": int(one) for one in told.tolist()}
    if own.upper() in accepted:
        return accepted[own.upper()]
    most = int(told[np.argmax(times)])
    raise LayerError(
        f"{file}: {column} says SRID={most}, and {own} is the system of the {'file' if source else 'layer'}",
        hint=f"--source-crs EPSG:{most} converts it",
    )
