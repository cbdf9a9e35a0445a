"""The layers of a case as the tables and indexes that a home has."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from shapely import Point

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.geometry.space import Space
from st_common.layers import in_memory
from st_common.layers.features import Features
from st_common.layers.index import LayerIndex
from st_common.layers.rows import layer_rows
from st_common.layers.table import append_rows
from st_common.partitioning.regions import Regions
from tests.kit.oracle import Feature, Fix, Layers, Row
from tests.kit.strategies import LAYER, Case

_INF = float("inf")
REGIONS = Regions(
    group="default",
    version=1,
    region_id=["0", "10", "11"],
    bounds=np.array([[-_INF, -_INF, 4, _INF], [4, -_INF, _INF, 3], [4, 3, _INF, _INF]]),
)
"""Three regions of the grid, so that features lie across borders."""
HALVES = Regions(
    group="default",
    version=1,
    region_id=["west", "east"],
    bounds=np.array([[-_INF, -_INF, 0, _INF], [0, -_INF, _INF, _INF]]),
)


def store_layers(home: Home, case: Case) -> Case:
    """Writes every version of the case's layer; gives back the case with the versions of the table in its rows.

    Raises:
        ValueError: a version holds no feature, as no layer that was loaded does.
    """
    contract, versions = load_contract("layers"), {}
    for _, number in sorted(case.layers):
        if not case.layers[LAYER, number]:
            raise ValueError(f"version {number} of the layer holds no feature")
        rows = layer_rows(features_of(case.layers[LAYER, number]), REGIONS)
        versions[number] = tables.replace(home.table("layers", LAYER), rows, contract)
    return _renumbered(case, versions)


def put_layers(home: Home, case: Case) -> Case:
    """As `store_layers`, but each version is made of the one before by puts and deletes of what differs."""
    path, versions = home.table("layers", LAYER), dict[int, int]()
    before = dict[str, Feature]()
    for _, number in sorted(case.layers):
        now = {one.fid: one for one in case.layers[LAYER, number]}
        changed = [one for one in now.values() if before.get(one.fid) != one]
        gone = [before[fid]._replace(geometry=Point()) for fid in {*before} - {*now}]
        for some, deletes in ((gone, True), (changed or [*now.values()][:1], False)):
            if not some:
                continue
            rows = layer_rows(features_of(some), REGIONS)
            rows = rows.append_column("deleted", [[deletes] * len(rows)])
            versions[number] = append_rows(path, rows, now_us=number)
        before = now
    return _renumbered(case, versions)


def index_of(features: Sequence[Feature], *, space: Space) -> LayerIndex:
    """The features as the index that engines match with, without a table; two regions meet at the meridian."""
    rows = layer_rows(features_of(features), HALVES)
    return in_memory.index_of(rows, space=space)


def features_of(drafts: Sequence[Feature]) -> Features:
    """The features of the oracle as those that a file gives."""
    features = sorted(drafts, key=lambda feature: feature.fid)
    return Features(
        fids=_objects([feature.fid for feature in features]),
        kinds=_objects([feature.kind for feature in features]),
        tags=_objects([dict(feature.tags) for feature in features]),
        geometries=_objects([feature.geometry for feature in features]),
        wanted=len(features),
    )


def _objects(values: Sequence[object]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _renumbered(case: Case, versions: dict[int, int]) -> Case:
    rows: list[Row] = []
    for row in case.rows:
        if isinstance(row, Fix):
            rows.append(row)
            continue
        control = dict(row.row)
        key = "version" if control["op"] == "layer" else "layer_version"
        if control.get(key) is not None:
            control[key] = versions[control[key]]
        rows.append(replace(row, row=control))
    layers: Layers = {
        (LAYER, versions[number]): features
        for (_, number), features in case.layers.items()
    }
    return replace(case, rows=tuple(rows), layers=layers)
