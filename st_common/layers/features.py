"""What a reader of layer files gives: features as columns, and what was wrong with the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.longitudes import has_two_readings
from st_common.geometry.near import outlines
from st_common.geometry.space import GLOBE, Space
from st_common.layers.faults import (
    REJECTED,
    REPAIRED,
    Fault,
    Outcome,
    counted,
    features_of,
    in_order,
    told,
)

_POLYGONS = (3, 6)  # type ids: Polygon, MultiPolygon
_FIRST_OF_MANY, _LAST_OF_MANY = 4, 7  # type ids: MultiPoint to GeometryCollection
_OF_PARTS: Mapping[int, Callable[..., Any]] = {
    4: shapely.multipoints,
    5: shapely.multilinestrings,
    6: shapely.multipolygons,
    7: shapely.geometrycollections,
}

Progress = Callable[
    [str, int], None
]  # what is being done, and how many features of it are done
Geometries = npt.NDArray[np.object_]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NOTHING = shapely.Point()
_AXES = "what is out of the system fits as latitude, longitude: are coordinates in that order? --lat-lon reads them so"


@dataclass(slots=True)
class Found:
    """Features while a file is read, before anybody looked at their geometries; the lists have one item per feature.

    Attributes:
        fids: the features' ids, which may repeat.
        kinds: their kinds.
        tags: their tags, by name.
        geometries: WKB, as hexadecimal text or bytes.
        numbers: where they stand in the file, from 1; 0: their ids say it.
        faults: what was left out, and what was mended.
        wanted: how many have a kind in the file: each of them is among the features or among the rejected.
        counts: what `numbers` count: features, lines.
        notes: what was guessed or taken from the file, for whoever loads it.
    """

    fids: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)
    geometries: list[str | bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    wanted: int = 0
    counts: str = "feature"
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        fid: str,
        kind: str,
        tags: dict[str, str],
        geometry: str | bytes,
        number: int = 0,
    ) -> None:
        """Adds a feature; see the attributes."""
        self.fids.append(fid)
        self.kinds.append(kind)
        self.tags.append(tags)
        self.geometries.append(geometry)
        self.numbers.append(number)

    def reject(self, reason: str, fid: str, number: int = 0) -> None:
        """Names a feature that is left out; `fid` is "" where it has none that can be used."""
        self.faults.append(Fault(REJECTED, fid, self._where(number), reason))

    def repair(self, reason: str, fid: str, number: int = 0) -> None:
        """Names a feature that is not loaded as it stands in the file."""
        self.faults.append(Fault(REPAIRED, fid, self._where(number), reason))

    def faults_of(
        self, rows: Iterable[int], reason: str, outcome: Outcome = REJECTED
    ) -> list[Fault]:
        """One fault for each of some rows of the lists."""
        return [
            Fault(outcome, self.fids[row], self._where(self.numbers[row]), reason)
            for row in rows
        ]

    def only(self, rows: Iterable[int], geometries: Iterable[str | bytes]) -> "Found":
        """The same file with some of its features, in their order, and other geometries; `faults` are shared."""
        kept = Found(
            faults=self.faults, wanted=self.wanted, counts=self.counts, notes=self.notes
        )
        for row, geometry in zip(rows, geometries, strict=True):
            kept.add(
                self.fids[row],
                self.kinds[row],
                self.tags[row],
                geometry,
                self.numbers[row],
            )
        return kept

    def places(self, rows: Iterable[int]) -> set[tuple[str, str]]:
        """The ids and places of some rows, as faults have them."""
        return {(self.fids[row], self._where(self.numbers[row])) for row in rows}

    def _where(self, number: int) -> str:
        return f"{self.counts} {number}" if number else ""


class Outside(NamedTuple):
    """How many features a file has, how many reach out of their system, and how many of these would not if swapped.

    Counts of parts of a file add up; of all of it they say whether its axes are in doubt.
    """

    features: int = 0
    outside: int = 0
    swapped: int = 0

    @property
    def questions(self) -> tuple[str, ...]:
        """What to ask where most geometries reach out, and none would, had they the second coordinate first."""
        is_most = 2 * self.outside > self.features
        return (_AXES,) if is_most and self.swapped == self.outside else ()


_NONE_OUTSIDE = Outside()


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features with valid, non-empty geometries, one row each, sorted by fid; every fid stands once.

    Attributes:
        fids: object[n], texts, ascending.
        kinds: object[n], texts.
        tags: object[n], a dict each.
        geometries: object[n], Shapely geometries.
        wanted: how many the file has of the kinds that were asked for: features and rejected ones together.
        faults: what was left out and what was mended, as the file has them.
        notes: what was guessed or taken from the file, for whoever loads it.
        reach: how many reach out of their system.
    """

    fids: npt.NDArray[np.object_]
    kinds: npt.NDArray[np.object_]
    tags: npt.NDArray[np.object_]
    geometries: Geometries
    wanted: int
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    reach: Outside = _NONE_OUTSIDE

    @property
    def rejected(self) -> dict[str, int]:
        """How many were left out, by reason."""
        return counted(self.faults, REJECTED)

    @property
    def repaired(self) -> int:
        """How many are not loaded as they stand in the file."""
        return features_of(self.faults, REPAIRED)


MORE = ": fairway layer load --all names them"
"""How features are named that are read for something else than a layer."""


def lines_of(features: Features, *, more: str) -> list[str]:
    """Lines for people: what was guessed of a file, how many of its features were rejected, and which.

    Args:
        features: as they were read.
        more: how those can be named that are too many.
    """
    lines = [f"note: {note}" for note in features.notes]
    rejected = ", ".join(
        f"{count:,} {reason}" for reason, count in features.rejected.items()
    )
    if rejected:
        lost = sum(features.rejected.values())
        lines.append(f"rejected {lost:,} of {features.wanted:,} features: {rejected}")
    lines += told(
        [one for one in features.faults if one.outcome == REJECTED], more=more
    )
    return lines


def checked(drafts: Found, *, space: Space = GLOBE) -> Features:
    """The features whose geometries are valid or can be made so; the others are rejected.

    Reasons: `out_of_crs` (a coordinate is no finite number, or on the globe beyond 180 and 90 degrees), `bad_geometry`
    (GEOS cannot build it), `degenerate` (nothing of its own dimension is left when made valid, as in a ring without
    area), `duplicate_fid` (the first one stays), `crosses_180` (on the globe: a side is longer than 180 degrees, so
    that it can be read in two ways; RFC 7946 splits such features at 180 degrees).
    Mended: `empty_part` and `hole_outside` (it is left out), `made_valid`.

    Args:
        drafts: the features as a file has them.
        space: what coordinates mean; on the plane nothing crosses 180 degrees.
    """
    order, doubles = _first_of_each(drafts.fids)
    geometries = shapely.from_wkb(
        np.array(drafts.geometries, dtype=object), on_invalid="ignore"
    )[order]
    outside = _reaching_out(geometries, space)
    reach = _reach(geometries, outside, space)
    geometries[outside] = _NOTHING  # nothing more is asked of them
    leaping = np.zeros(len(geometries), bool) if space.is_flat else _leaping(geometries)
    geometries, mended = _repaired(geometries)
    # Each feature that is left out is counted under one reason.
    lost = shapely.is_missing(geometries) & ~leaping
    empty = shapely.is_empty(geometries) & ~(leaping | outside)
    keep = ~(lost | empty | leaping | outside)
    left_out = {
        "duplicate_fid": doubles,
        "out_of_crs": order[outside],
        "crosses_180": order[leaping],
        "bad_geometry": order[lost],
        "degenerate": order[empty],
    }
    return Features(
        fids=_objects(drafts.fids)[order][keep],
        kinds=_objects(drafts.kinds)[order][keep],
        tags=_objects(drafts.tags)[order][keep],
        geometries=geometries[keep],
        wanted=drafts.wanted,
        faults=_faults(drafts, left_out, mended, order, keep),
        notes=(*drafts.notes, *reach.questions),
        reach=reach,
    )


def _faults(
    drafts: Found,
    left_out: Mapping[str, Ints],
    mended: Mapping[str, Mask],
    order: Ints,
    keep: Mask,
) -> tuple[Fault, ...]:
    """All faults, by where they stand in the file as far as that is known; what is left out was not mended."""
    kept = drafts.places(order[keep])
    faults = [
        one
        for one in drafts.faults
        if not one.is_repaired or (one.fid, one.where) in kept
    ]
    for reason, rows in left_out.items():
        faults += drafts.faults_of(np.sort(rows), reason)
    told = {one for one in faults if one.is_repaired}
    for reason, where in mended.items():
        rows = np.sort(order[where & keep])
        mine = drafts.faults_of(rows, reason, REPAIRED)
        faults += [one for one in mine if one not in told]
    return in_order(faults)


def _first_of_each(fids: list[str]) -> tuple[Ints, Ints]:
    """Where each fid stands first, in the order of fids, and the rows that are left out by that."""
    rows = (
        np.argsort(np.array(fids, dtype=object), kind="stable")
        if fids
        else np.empty(0, np.int64)
    )
    ordered = _objects(fids)[rows]
    first = np.ones(len(rows), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return rows[first], rows[~first]


def _reaching_out(geometries: Geometries, space: Space) -> Mask:
    """Which geometries have a coordinate that is none in their space."""
    places, owner = shapely.get_coordinates(geometries, return_index=True)
    outside = np.zeros(len(geometries), bool)
    outside[owner[~space.contains(places[:, 0], places[:, 1])]] = True
    return outside


def _reach(geometries: Geometries, outside: Mask, space: Space) -> Outside:
    """How many reach out, and how many of these would not, had they the second coordinate first."""
    reaching = geometries[outside]
    places, owner = shapely.get_coordinates(reaching, return_index=True)
    fits = np.full(len(reaching), not space.is_flat)
    fits[owner[~space.contains(places[:, 1], places[:, 0])]] = False
    return Outside(len(geometries), len(reaching), int(fits.sum()))


def _leaping(geometries: Geometries) -> Mask:
    """Which geometries have a side of more than half a turn and less than a whole one, as along the map's border."""
    shapes = outlines(geometries)
    leaps = np.append(0, np.cumsum(has_two_readings(shapes.ends[2] - shapes.ends[0])))
    bounds = shapes.start[shapes.piece_start]
    return np.asarray(np.diff(leaps[bounds]) > 0, bool)


def _repaired(geometries: Geometries) -> tuple[Geometries, dict[str, Mask]]:
    """Geometries made valid in their own dimension, and which of them were mended in which way."""
    result, empty = without_empty_parts(geometries)
    broken = np.flatnonzero(_are_invalid(result))
    mended = {
        "empty_part": empty,
        "hole_outside": np.zeros(len(result), bool),
    }
    result[broken], had = without_outer_holes(result[broken])
    mended["hole_outside"][broken] = had
    mended["made_valid"] = still = _are_invalid(result)
    result[still], _ = without_empty_parts(_made_valid(result[still]))
    return result, mended


def _made_valid(geometries: Geometries) -> Geometries:
    """Geometries made valid; None for one that GEOS cannot mend, as where numbers overflow."""
    try:
        return np.asarray(
            shapely.make_valid(geometries, method="structure", keep_collapsed=False)
        )
    except shapely.errors.ShapelyError:
        if len(geometries) == 1:
            return np.array([None], object)
    half = len(geometries) // 2
    return np.concatenate(
        [_made_valid(geometries[:half]), _made_valid(geometries[half:])]
    )


def _are_invalid(geometries: Geometries) -> Mask:
    return np.asarray(
        ~(shapely.is_valid(geometries) | shapely.is_missing(geometries)), bool
    )


def _objects(values: list[str] | list[dict[str, str]]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def without_outer_holes(geometries: Geometries) -> tuple[Geometries, Mask]:
    """The geometries without each hole that has no point in common with its shell, and which had one.

        shell 0 0, 2 2; holes .5 .5, 1 1 and 5 5, 6 6   ->   the first hole alone

    What makes geometries valid would take such a hole for another area. Collections are left as they are.

    Args:
        geometries: object[n], Shapely geometries; None for none.
    """
    of_areas = np.flatnonzero(np.isin(shapely.get_type_id(geometries), _POLYGONS))
    parts, owner = shapely.get_parts(geometries[of_areas], return_index=True)
    many = np.flatnonzero(shapely.get_num_interior_rings(parts) > 0)
    had = np.zeros(len(geometries), bool)
    result = geometries.copy()
    for part in many:
        kept = _holes_within(parts[part])
        if kept is None:
            continue
        parts[part] = kept
        had[of_areas[owner[part]]] = True
    for row in np.flatnonzero(had[of_areas]):
        mine = parts[owner == row]
        one = shapely.get_type_id(geometries[of_areas[row]]) == _POLYGONS[0]
        result[of_areas[row]] = mine[0] if one else shapely.multipolygons(mine)
    return result, had


def _holes_within(polygon: shapely.Geometry) -> shapely.Geometry | None:
    """The polygon with those of its holes that touch its shell; None: all do."""
    shell = shapely.get_exterior_ring(polygon)
    rings, _ = shapely.get_rings(polygon, return_index=True)
    holes = rings[1:]
    area, inner = (
        shapely.make_valid(shapely.polygons(one), method="structure")
        for one in (shell, holes)
    )
    within = shapely.intersects(area, inner)
    return None if within.all() else shapely.polygons(shell, holes[within])


def without_empty_parts(geometries: Geometries) -> tuple[Geometries, Mask]:
    """The geometries without their empty parts, and which had some; one of nothing else is empty.

        MULTIPOLYGON (EMPTY, ((0 0, 1 0, 1 1, 0 0)))   ->   MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))

    Args:
        geometries: object[n], Shapely geometries; None for none.
    """
    kinds = shapely.get_type_id(geometries)
    of_parts = np.flatnonzero((kinds >= _FIRST_OF_MANY) & (kinds <= _LAST_OF_MANY))
    parts, owner = shapely.get_parts(geometries[of_parts], return_index=True)
    nested = shapely.get_type_id(parts) >= _FIRST_OF_MANY
    odd = np.unique(owner[shapely.is_empty(parts) | nested])
    had, result = np.zeros(len(geometries), bool), geometries.copy()
    for row in of_parts[odd]:
        inner = np.asarray(shapely.get_parts(geometries[row]))
        inner, mended = without_empty_parts(inner)
        full = ~shapely.is_empty(inner)
        if full.all() and not mended.any():
            continue
        had[row] = True
        result[row] = _OF_PARTS[int(kinds[row])](inner[full])
    return result, had
