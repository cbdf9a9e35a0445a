"""Coordinates of features from the system of their file into that of the streams that use them."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyproj
import shapely

from st_common.crs import WGS84, unit_of_crs
from st_common.errors import ConfigError, LayerError
from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.layers.features import Found, Geometries
from st_common.settings import StreamSettings
from st_common.stream_keys import PLANAR

Floats = npt.NDArray[np.float64]
DEGREES = f"EPSG:{WGS84}"


def crs_of_group(streams: Iterable[StreamSettings], group: str) -> str:
    """The system that all streams of a group have; EPSG:4326 where there are none, or of several systems.

    Args:
        streams: of the settings.
        group: whose layers are asked for.

    Returns:
        "EPSG:" and a number, or "planar".
    """
    systems = {stream.crs for stream in streams if stream.group == group}
    return systems.pop() if len(systems) == 1 else DEGREES


def space_of(crs: str) -> Space:
    """What coordinates of a system mean: degrees on the globe, or places on a plane.

    Raises:
        ConfigError: no such system is known.
    """
    if crs == PLANAR:
        return PLANE
    name, _, number = crs.partition(":")
    try:
        if name.upper() != "EPSG":
            raise ValueError  # noqa: TRY301 - one error for all
        return GLOBE if unit_of_crs(int(number)) is None else PLANE
    except ValueError:
        raise ConfigError(
            f"{crs!r} is no system of coordinates that is known",
            hint='"EPSG:" and a number, such as EPSG:25832',
        ) from None


def converted(
    found: Found, source: str | None, target: str | None, *, file: object
) -> Found:
    """The features with their coordinates in another system; those that have no place in it are rejected.

        POINT (10 50) in EPSG:4326, into EPSG:25832   ->   POINT (571666.4 5539109.8)

    A new reason of rejects: `out_of_crs` (a coordinate is no finite number in the new system, or beyond 180 and
    90 degrees).

    Args:
        found: the features of a file.
        source: their system, as pyproj understands it: "EPSG:4326", WKT, PROJJSON; None: the file does not say.
        target: the system to come; None: coordinates stay as they are.
        file: names the file in errors.

    Raises:
        LayerError: the file does not say its system, or says one that nobody knows.
    """
    if target is None or not found.fids:
        return found
    transformer = _transformer(source, target, file)
    built = shapely.from_wkb(
        np.array(found.geometries, dtype=object), on_invalid="ignore"
    )
    if transformer is not None:
        built = shapely.transform(built, partial(_moved, transformer))
    return _within(found, built, space_of(target))


def _moved(transformer: pyproj.Transformer, places: Floats) -> Floats:
    return np.column_stack(transformer.transform(places[:, 0], places[:, 1]))


def _transformer(
    source: str | None, target: str, file: object
) -> pyproj.Transformer | None:
    """What converts x and y; None where both systems are the same."""
    if source is None:
        raise LayerError(
            f"{file} does not say in which system its coordinates are",
            hint="--source-crs EPSG:.. says it; --planar takes them as they are",
        )
    try:
        own, wanted = pyproj.CRS.from_user_input(source), pyproj.CRS(target)
    except pyproj.exceptions.CRSError:
        raise LayerError(
            f"{file}: its system of coordinates is not known: {source[:80]!r}",
            hint="--source-crs EPSG:.. says it",
        ) from None
    if own.equals(wanted, ignore_axis_order=True):
        return None
    return pyproj.Transformer.from_crs(own, wanted, always_xy=True)


def _within(found: Found, geometries: Geometries, space: Space) -> Found:
    places, owner = shapely.get_coordinates(geometries, return_index=True)
    inside = np.ones(len(geometries), np.bool_)
    inside[owner[~_has_place(places, space)]] = False
    kept = Found(rejected=found.rejected, repaired=found.repaired, wanted=found.wanted)
    kept.rejected["out_of_crs"] += int((~inside).sum())
    wkb = shapely.to_wkb(geometries)
    for row in np.flatnonzero(inside):
        kept.add(found.fids[row], found.kinds[row], found.tags[row], wkb[row])
    return kept


def _has_place(places: Floats, space: Space) -> npt.NDArray[np.bool_]:
    return np.asarray(space.contains(places[:, 0], places[:, 1]), np.bool_)
