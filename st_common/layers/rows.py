"""Features as rows of a layer's table: one for each region that a feature touches."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import shapely

from st_common.layers.features import Features, Geometries
from st_common.partitioning.regions import Regions, assign, touching

Ints = npt.NDArray[np.int64]


def layer_rows(
    features: Features, regions: Regions, *, attribution: str | None = None
) -> pa.Table:
    """The rows of a layer's table: one for each region that a feature touches, sorted by region, then fid.

        feature across regions "0" and "1", a point on it in "1"   ->   rows ("0", home False), ("1", home True)

    A feature stands in every closed region that its geometry touches. Its home is the region of one point on it, so
    that it is home in exactly one, and who counts features counts those. One with an empty geometry has no place: it
    stands in the first region, and its box is NaN.

    Args:
        features: sorted by fid.
        regions: of the layer's group; they tile the plane, and have two dimensions as features have.
        attribution: whose data it is; None: nothing must be said.
    """
    bounds = shapely.bounds(features.geometries)
    feature, region, home = _places(features, bounds, regions)
    order = np.lexsort([feature, region])
    feature, region, home = feature[order], region[order], home[order]
    return pa.table(
        {
            "region_id": pa.array(
                np.array(regions.region_id, dtype=object)[region], pa.string()
            ),
            **{
                name: bounds[feature, column]
                for column, name in enumerate(("minx", "miny", "maxx", "maxy"))
            },
            "home": home,
            "fid": pa.array(features.fids[feature], pa.string()),
            "kind": pa.array(features.kinds[feature], pa.string()),
            "tags": _maps(features.tags[feature]),
            "geometry": pa.array(
                shapely.to_wkb(features.geometries)[feature], pa.binary()
            ),
            "region_version": np.full(len(feature), regions.version, np.int32),
            "region_group": pa.repeat(pa.scalar(regions.group), len(feature)),
            "attribution": pa.repeat(pa.scalar(attribution, pa.string()), len(feature)),
            "put_number": np.zeros(len(feature), np.int64),
        }
    )


def features_in(rows: pa.Table) -> Features:
    """The features of rows, one each, with what `layer_rows` needs.

    Args:
        rows: sorted by fid, with the columns `fid`, `kind`, `tags` and `geometry`, and each feature once.
    """
    tags = np.empty(len(rows), object)
    tags[:] = [dict(one) for one in rows["tags"].to_pylist()]
    return Features(
        fids=rows["fid"].to_numpy(zero_copy_only=False),
        kinds=rows["kind"].to_numpy(zero_copy_only=False),
        tags=tags,
        geometries=shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False)),
        wanted=len(rows),
    )


def shapes_of(rows: pa.Table) -> Geometries:
    """The geometries of rows with `geometry`, of a layer; object[n], None where a feature has no place."""
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    shapes[shapely.is_empty(shapes)] = None
    return np.asarray(shapes, object)


def _places(
    features: Features, bounds: npt.NDArray[np.float64], regions: Regions
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Pairs of a feature and a region that it touches, and whether that is its home."""
    is_placed = np.isfinite(bounds).all(axis=1)
    placed, nowhere = np.flatnonzero(is_placed), np.flatnonzero(~is_placed)
    feature, region, home = _touched(
        features.geometries[placed], bounds[placed], regions
    )
    return (
        np.concatenate([placed[feature], nowhere]),
        np.concatenate([region, np.zeros(len(nowhere), np.int64)]),
        np.concatenate([home, np.ones(len(nowhere), np.bool_)]),
    )


def _touched(
    geometries: Geometries, bounds: npt.NDArray[np.float64], regions: Regions
) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """As `_places`, of geometries that are not empty."""
    if not len(geometries):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
    inner = shapely.point_on_surface(geometries)
    # rounding may put the point just beside the geometry, but never outside its box
    x = np.clip(shapely.get_x(inner), bounds[:, 0], bounds[:, 2])
    y = np.clip(shapely.get_y(inner), bounds[:, 1], bounds[:, 3])
    feature, region = touching(regions, bounds)
    home = assign(regions, np.column_stack([x, y]))[feature] == region
    # Most features lie in one region, and their geometry need not be asked.
    crossing = np.flatnonzero(np.bincount(feature, minlength=len(bounds))[feature] > 1)
    keep = np.ones(len(feature), np.bool_)
    low, high = bounds[:, :2].min(axis=0) - 1, bounds[:, 2:].max(axis=0) + 1
    finite = np.clip(regions.bounds, [*low, *low], [*high, *high])
    cells = np.asarray(shapely.box(*finite.T), dtype=object)[region[crossing]]
    keep[crossing] = (
        shapely.intersects(geometries[feature[crossing]], cells) | home[crossing]
    )
    return feature[keep], region[keep], home[keep]


def _maps(tags: npt.NDArray[np.object_]) -> pa.Array:
    return pa.array(
        [list(one.items()) for one in tags], pa.map_(pa.string(), pa.string())
    )
