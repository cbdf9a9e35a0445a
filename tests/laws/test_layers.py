"""The laws with layers from their tables: features by region, planar distances, layers loaded anew."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.engine.local import LocalEngine
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import put_layers, store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.strategies import cases, segmentations


@st.composite
def lives(draw):
    case = draw(cases(layers=True))
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    return case, draw(segmentations(len(case.rows)))


@pytest.mark.spec("B9", "X1", "X4", "P3")
@tries(12)
@given(lives())
def test_an_engine_with_layers_by_region_tells_what_brute_force_tells(life):
    holds(life, store_layers)


@pytest.mark.spec("B15", "P13", "X4", "P3")
@tries(12)
@given(lives())
def test_an_engine_tells_exactly_the_changes_of_puts_and_deletes(life):
    holds(life, put_layers)


def holds(life, stored_by):
    case, cut = life
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        case = stored_by(home, case)
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        engine = LocalEngine(home, stream)
        while engine.batch():
            pass
        engine.close()
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
