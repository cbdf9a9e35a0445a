"""Coordinates of features from the system of their file into that of the streams that use them."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyproj
import shapely

from st_common.config.stream import StreamSettings
from st_common.config.stream_values import PLANAR
from st_common.crs import WGS84, unit_of_crs
from st_common.errors import ConfigError, LayerError
from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.layers.features import Found

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
    found: Found,
    source: str | None,
    target: str | None,
    *,
    file: object,
    lat_lon: bool = False,
) -> Found:
    """The features with their coordinates in another system; what has no place in it has no finite numbers.

        POINT (10 50) in EPSG:4326, into EPSG:25832   ->   POINT (571666.4 5539109.8)

    Args:
        found: the features of a file.
        source: their system, as pyproj understands it: "EPSG:4326", WKT, PROJJSON; None: the file does not say.
        target: the system to come; None: coordinates stay as they are.
        file: names the file in errors.
        lat_lon: whether the second coordinate stands first.

    Raises:
        LayerError: the file does not say its system, or says one that nobody knows.
    """
    transformer = None if target is None else _transformer(source, target, file)
    if not found.fids or not (transformer or lat_lon):
        return found
    built = shapely.from_wkb(
        np.array(found.geometries, dtype=object), on_invalid="ignore"
    )
    moved = shapely.transform(built, partial(_moved, transformer, lat_lon))
    return found.only(range(len(moved)), shapely.to_wkb(moved).tolist())


def _moved(
    transformer: pyproj.Transformer | None,
    lat_lon: bool,  # noqa: FBT001 - bound by `partial`
    places: Floats,
) -> Floats:
    x, y = (places[:, 1], places[:, 0]) if lat_lon else (places[:, 0], places[:, 1])
    if transformer is not None:
        x, y = transformer.transform(x, y)
    return np.column_stack([x, y])


def _transformer(
    source: str | None, target: str, file: object
) -> pyproj.Transformer | None:
    """What converts x and y; None where both systems are the same."""
    if source is None:
        raise LayerError(
            f"{file} does not say in which system its coordinates are",
            hint="--source-crs EPSG:.. says it; --crs planar takes them as they are",
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
    try:
        return pyproj.Transformer.from_crs(own, wanted, always_xy=True)
    except pyproj.exceptions.ProjError:
        raise LayerError(
            f"{file}: nothing converts {own.name} into {target}",
            hint="--crs names another system, --source-crs that of the file",
        ) from None
