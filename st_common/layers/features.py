"""What a reader of layer files gives: features as columns, and what was wrong with the others."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.longitudes import has_two_readings
from st_common.geometry.near import outlines
from st_common.geometry.space import GLOBE, Space

Progress = Callable[
    [str, int], None
]  # what is being done, and how many features of it are done
Geometries = npt.NDArray[np.object_]


@dataclass(slots=True)
class Found:
    """Features while a file is read, before anybody looked at their geometries; the lists have one item per feature.

    Attributes:
        fids: the features' ids, which may repeat.
        kinds: their kinds.
        tags: their tags, by name.
        geometries: WKB, as hexadecimal text or bytes.
        rejected: how many were left out, by reason.
        repaired: how many lines lack nodes that the file does not have.
        wanted: how many have a kind in the file: each of them is among the features or among the rejected.
    """

    fids: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)
    geometries: list[str | bytes] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    repaired: int = 0
    wanted: int = 0

    def add(
        self, fid: str, kind: str, tags: dict[str, str], geometry: str | bytes
    ) -> None:
        """Adds a feature; see the attributes."""
        self.fids.append(fid)
        self.kinds.append(kind)
        self.tags.append(tags)
        self.geometries.append(geometry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features with valid, non-empty geometries, one row each, sorted by fid; every fid stands once.

    Attributes:
        fids: object[n], texts, ascending.
        kinds: object[n], texts.
        tags: object[n], a dict each.
        geometries: object[n], Shapely geometries.
        wanted: how many the file has of the kinds that were asked for: features and rejected ones together.
        repaired: how many geometries had to be made valid.
        rejected: how many were left out, by reason.
    """

    fids: npt.NDArray[np.object_]
    kinds: npt.NDArray[np.object_]
    tags: npt.NDArray[np.object_]
    geometries: Geometries
    wanted: int
    repaired: int
    rejected: dict[str, int]


def checked(drafts: Found, *, space: Space = GLOBE) -> Features:
    """The features whose geometries are valid or can be made so; the others are rejected.

    Reasons: `bad_geometry` (GEOS cannot build it), `degenerate` (nothing of its own dimension is left when made valid,
    as in a ring without area), `duplicate_fid` (the first one stays), `crosses_180` (on the globe: a side is
    longer than 180 degrees, so that it can be read in two ways; RFC 7946 splits such features at 180 degrees).

    Args:
        drafts: the features as a file has them.
        space: what coordinates mean; on the plane nothing crosses 180 degrees.
    """
    geometries = shapely.from_wkb(
        np.array(drafts.geometries, dtype=object), on_invalid="ignore"
    )
    rejected = Counter(drafts.rejected)
    order, doubles = _first_of_each(drafts.fids)
    rejected["duplicate_fid"] += doubles
    geometries = geometries[order]
    leaping = np.zeros(len(geometries), bool) if space.is_flat else _leaping(geometries)
    rejected["crosses_180"] += int(leaping.sum())
    geometries, broken = _repaired(geometries)
    # Each feature that is left out is counted under one reason.
    lost = shapely.is_missing(geometries) & ~leaping
    rejected["bad_geometry"] += int(lost.sum())
    empty = shapely.is_empty(geometries) & ~leaping
    rejected["degenerate"] += int(empty.sum())
    keep = ~(lost | empty | leaping)
    return Features(
        fids=_objects(drafts.fids)[order][keep],
        kinds=_objects(drafts.kinds)[order][keep],
        tags=_objects(drafts.tags)[order][keep],
        geometries=geometries[keep],
        wanted=drafts.wanted,
        repaired=drafts.repaired + int((broken & keep).sum()),
        rejected=dict(sorted((+rejected).items())),
    )


def _first_of_each(fids: list[str]) -> tuple[npt.NDArray[np.int64], int]:
    """Where each fid stands first, in the order of fids, and how many rows are left out by that."""
    rows = (
        np.argsort(np.array(fids, dtype=object), kind="stable")
        if fids
        else np.empty(0, np.int64)
    )
    ordered = _objects(fids)[rows]
    first = np.ones(len(rows), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return rows[first], int((~first).sum())


def _leaping(geometries: Geometries) -> npt.NDArray[np.bool_]:
    """Which geometries have a side of more than half a turn and less than a whole one, as along the map's border."""
    shapes = outlines(geometries)
    leaps = np.append(0, np.cumsum(has_two_readings(shapes.ends[2] - shapes.ends[0])))
    bounds = shapes.start[shapes.piece_start]
    return np.asarray(np.diff(leaps[bounds]) > 0, bool)


def _repaired(geometries: Geometries) -> tuple[Geometries, npt.NDArray[np.bool_]]:
    """Geometries made valid in their own dimension, and which of them were not valid."""
    broken = ~(shapely.is_valid(geometries) | shapely.is_missing(geometries))
    result = geometries.copy()
    result[broken] = shapely.make_valid(
        geometries[broken], method="structure", keep_collapsed=False
    )
    return result, broken


def _objects(values: list[str] | list[dict[str, str]]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
