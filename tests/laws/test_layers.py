"""The laws with layers from their tables: features by region, planar distances, layers loaded anew."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from st_common import tables
from st_common.contracts import load_contract
from st_common.engine.local import LocalEngine
from st_common.home import Home
from st_common.layers.features import Features
from st_common.layers.rows import layer_rows
from st_common.partition.regions import Regions
from st_common.testing import oracle
from st_common.testing.laws import told, told_by_oracle
from st_common.testing.log_writer import settings_of, write_log
from st_common.testing.strategies import LAYER, cases, segmentations

INF = float("inf")
REGIONS = Regions(
    group="default", version=1, region_id=["0", "10", "11"],
    bounds=np.array([[-INF, -INF, 4, INF], [4, -INF, INF, 3], [4, 3, INF, INF]]),
)  # fmt: skip


def objects(values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def store_layers(home, layers):
    """Every version of the layer as a Delta version: version 0 is the first that is written."""
    contract = load_contract("layers")
    for version in sorted(number for _, number in layers):
        found = sorted(layers[LAYER, version], key=lambda feature: feature.fid)
        features = Features(
            fids=objects([feature.fid for feature in found]), kinds=objects([feature.kind for feature in found]),
            tags=objects([dict(feature.tags) for feature in found]),
            geometries=objects([feature.geometry for feature in found]), repaired=0, rejected={},
        )  # fmt: skip
        yield tables.replace(home.table("layers", LAYER), layer_rows(features, REGIONS), contract)


def renumbered(case, versions):
    """The case with the Delta versions of its layers in its control rows."""
    rows = []
    for row in case.rows:
        if isinstance(row, oracle.Fix):
            rows.append(row)
            continue
        control = dict(row.row)
        key = "version" if control["op"] == "layer" else "layer_version"
        if control.get(key) is not None:
            control[key] = versions[control[key]]
        rows.append(replace(row, row=control))
    layers = {(LAYER, versions[number]): found for (_, number), found in case.layers.items()}
    return replace(case, rows=tuple(rows), layers=layers)


@st.composite
def lives(draw):
    case = draw(cases(layers=True))
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    return case, draw(segmentations(len(case.rows)))


@pytest.mark.spec("B9", "X1", "X4", "P3")
@settings(max_examples=12)
@given(lives())
def test_an_engine_with_layers_by_region_tells_what_brute_force_tells(life):
    case, cut = life
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        stored = list(store_layers(home, case.layers))
        case = renumbered(case, dict(zip(sorted(n for _, n in case.layers), stored, strict=True)))
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        engine = LocalEngine(home, stream)
        while engine.batch():
            pass
        engine.close()
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
