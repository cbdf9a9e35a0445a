"""The roads that objects travel on: those of a layer, of a file, of Brinkhoff's CSV files, or a grid of streets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from demo.simulation.network import (
    Limits,
    RoadNetwork,
    network_of,
    read_network,
)
from st_common import tables
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.geometry.space import GLOBE, Space
from st_common.layers.features import MORE, lines_of
from st_common.layers.kinds import load_kinds
from st_common.layers.reading import Wanted, read_features
from st_common.layers.table import layer_names, newest_version
from st_common.query.problem import did_you_mean

_KMH = 1 / 3.6
_OBJECTS_MPS = np.array([130, 120, 80, 80, 20, 5]) * _KMH
_ROADS_MPS = np.array([120, 100, 70, 50, 40, 30, 20, 10]) * _KMH
_USUAL_CLASS = 4
_CLASS_OF_HIGHWAY: Mapping[str, int] = {
    "motorway": 0,
    "trunk": 1,
    "primary": 2,
    "secondary": 3,
    "tertiary": 3,
    "unclassified": 4,
    "residential": 5,
    "living_street": 6,
    "service": 6,
    "track": 6,
}
_PATH_CLASS = 7  # whatever else OpenStreetMap calls a highway
_BLOCKS, _BLOCK_M = 30, 150.0
_AVENUE = 5  # each so many streets one is faster
_MIDDLE = (8.2146, 53.1435)  # longitude and latitude of the grid without a place
_METRES_PER_DEGREE = 111_195.0
_MOST_NODES = np.iinfo(np.int16).max


def limits_per_step(step_s: float, *, unit_m: float = 1.0) -> Limits:
    """Top speeds as on real roads, in units of the coordinates per step.

    Args:
        step_s: the seconds of a step.
        unit_m: the metres of a unit; lengths on the globe are metres.
    """
    factor = step_s / unit_m
    return Limits(objects=_OBJECTS_MPS * factor, roads=_ROADS_MPS * factor)


def roads_of(
    home: Home, conf: Path, network: str, *, space: Space
) -> tuple[RoadNetwork, int, list[str]]:
    """The largest part of a network that hangs together, how many nodes the network has in all, and what is left out.

    Of one with more nodes than can be routed, 32,767, those around its middle are taken. What is left out of a file are
    features that cannot be used, as lines for people.

    Args:
        home: where layers lie.
        conf: the folder with layers.toml, which says what of an OSM file is a line.
        network: a layer's name; a file that layers are loaded from; or a folder with `*_nodes.csv` and `*_edges.csv`.
        space: what coordinates mean.

    Raises:
        ConfigError: there is no such layer or file, it has no lines, or is not in the stream's coordinates.
        LayerError: the file cannot be read.
    """
    path, left_out = Path(network), []
    if path.is_dir():
        drawn = _of_folder(path)
    elif path.exists():
        features = read_features(path, Wanted(load_kinds(conf), space=space))
        left_out = lines_of(features, more=MORE)
        drawn = network_of_lines(features.geometries, features.tags, space=space)
    else:
        drawn = network_of_lines(*_layer_lines(home, network), space=space)
    if not len(drawn.start):
        raise ConfigError(
            f"{network} has no lines to travel on", hint="roads are lines"
        )
    _check(drawn, network, space=space)
    return _largest_part(_around_middle(drawn)), len(drawn.x), left_out


def grid_of_streets(space: Space, *, unit_m: float = 1.0) -> RoadNetwork:
    """A town of 30 by 30 blocks of 150 m, each fifth street an avenue: what there is without a network.

    On a plane its corner is (0, 0); on the globe it lies around Oldenburg.
    """
    count = _BLOCKS + 1
    row, column = np.divmod(np.arange(count * count), count)
    east = np.flatnonzero(column < _BLOCKS)
    north = np.flatnonzero(row < _BLOCKS)
    a = np.concatenate([east, north])
    b = np.concatenate([east + 1, north + count])
    street = np.concatenate([row[east], column[north]])
    road_class = np.where(street % _AVENUE == 0, 2, 5)
    x, y = column * _BLOCK_M / unit_m, row * _BLOCK_M / unit_m
    if space is GLOBE:
        across = _METRES_PER_DEGREE * np.cos(np.radians(_MIDDLE[1]))
        x, y = _MIDDLE[0] + x / across, _MIDDLE[1] + y / _METRES_PER_DEGREE
    return network_of(x, y, a, b, road_class, space=space)


def network_of_lines(
    geometries: Sequence[Any] | np.ndarray,
    tags: Sequence[Mapping[str, str]] | np.ndarray,
    *,
    space: Space,
) -> RoadNetwork:
    """The network of the lines among some shapes; lines meet where they share a vertex.

    Where any shape has the tag `highway` only such are roads: a file of OpenStreetMap has rivers and railways, too.

    Args:
        geometries: Shapely geometries; of collections the lines count.
        tags: of each; `highway` says how fast its road is.
        space: what coordinates mean.
    """
    shapes = np.asarray(geometries, object)
    lines, whose = shapely.get_parts(shapes, return_index=True)
    is_road = np.array(["highway" in one for one in tags], bool)
    is_road |= not is_road.any()
    is_line = shapely.get_type_id(lines) == shapely.GeometryType.LINESTRING
    is_line &= is_road[whose]
    lines, whose = lines[is_line], whose[is_line]
    places, line = shapely.get_coordinates(lines, return_index=True)
    nodes, node = np.unique(places, axis=0, return_inverse=True)
    node = node.reshape(-1)
    goes_on = np.flatnonzero(line[:-1] == line[1:])
    classes = np.array([_class_of(tags[place]) for place in whose.tolist()], np.int64)
    return network_of(
        nodes[:, 0],
        nodes[:, 1],
        node[goes_on],
        node[goes_on + 1],
        classes[line[goes_on]],
        space=space,
    )


def _class_of(tags: Mapping[str, str]) -> int:
    highway = tags.get("highway")
    if highway is None:
        return _USUAL_CLASS
    return _CLASS_OF_HIGHWAY.get(highway.removesuffix("_link"), _PATH_CLASS)


def _of_folder(folder: Path) -> RoadNetwork:
    try:
        return read_network(folder)
    except ValueError as error:
        hint = "it needs one file *_nodes.csv and one *_edges.csv"
        raise ConfigError(str(error), hint=hint) from None


def _layer_lines(home: Home, layer: str) -> tuple[np.ndarray, list[dict[str, str]]]:
    """The shapes of the features of a layer's newest version, and their tags; by fid."""
    version = newest_version(home, layer)
    if version is None:
        known = list(layer_names(home))
        hint = did_you_mean(layer, known) or "fairway layer list shows which there are"
        raise ConfigError(f"there is no layer and no file {layer!r}", hint=hint)
    columns = ["home", "fid", "tags", "geometry"]
    rows = tables.read(home.table("layers", layer), version=version, columns=columns)
    rows = rows.filter(rows["home"]).sort_by("fid")
    shapes = shapely.from_wkb(rows["geometry"].to_numpy())
    return shapes, [dict(tags) for tags in rows["tags"].to_pylist()]


def _largest_part(network: RoadNetwork) -> RoadNetwork:
    """The nodes and roads of the largest part that hangs together, numbered anew."""
    count = len(network.x)
    ones = np.ones(len(network.start), np.int8)
    matrix = coo_matrix((ones, (network.start, network.end)), shape=(count, count))
    _, part = connected_components(matrix, directed=False)
    return _only(network, part == np.bincount(part).argmax())


def _around_middle(network: RoadNetwork) -> RoadNetwork:
    """The nodes nearest to the middle of all of them, as many as can be routed, with the roads between them."""
    if len(network.x) <= _MOST_NODES:
        return network
    off = np.hypot(network.x - np.median(network.x), network.y - np.median(network.y))
    is_near = np.zeros(len(network.x), bool)
    is_near[np.argsort(off, kind="stable")[:_MOST_NODES]] = True
    return _only(network, is_near)


def _only(network: RoadNetwork, kept: np.ndarray) -> RoadNetwork:
    """Some of the nodes, numbered anew, and the roads between them."""
    number = np.cumsum(kept) - 1
    road = kept[network.start] & kept[network.end]
    return replace(
        network,
        x=network.x[kept],
        y=network.y[kept],
        start=number[network.start[road]],
        end=number[network.end[road]],
        length=network.length[road],
        road_class=network.road_class[road],
    )


def _check(network: RoadNetwork, name: str, *, space: Space) -> None:
    if space is GLOBE and not (
        (np.abs(network.x) <= 180).all() and (np.abs(network.y) <= 90).all()
    ):
        raise ConfigError(
            f"{name} is not in degrees, and the stream is",
            hint='a stream with crs = "planar" takes it',
        )
