"""The laws where a few features of a layer change: who is judged anew does not show, but in what it costs."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.engine.local import LocalEngine
from st_common.operators.matching.layer import LayerOf
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import holds, told, told_by_oracle
from tests.kit.layer_puts import with_puts
from tests.kit.layer_tables import put_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.shapely_layer import PatchedLayer
from tests.kit.strategies import (
    Case,
    Course,
    Segmentation,
    cases,
    courses,
    segmentations,
)


@st.composite
def cases_with_puts(draw: st.DrawFn) -> Case:
    """Cases whose layer has a few other features from some rows on, version by version."""
    case = draw(cases(layers=True, layer_versions=(0,), rows=40))
    return with_puts(case, Random(draw(st.integers(0, (1 << 48) - 1))))


def layers_that_know(case: Case) -> LayerOf:
    """The layers of a case, each of which knows what changed since the versions before."""

    def layer_of(layer: str, version: int) -> PatchedLayer:
        older = {n: case.layers[layer, n] for _, n in case.layers if n < version}
        return PatchedLayer(case.layers[layer, version], older)

    return layer_of


@st.composite
def run_cases(draw: st.DrawFn) -> tuple[Case, Course]:
    case = draw(cases_with_puts())
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("X4", "X1", "P3")
@tries(40)
@given(run_cases())
def test_a_put_tells_what_brute_force_tells_whoever_is_judged_anew(drawn):
    case, course = drawn
    holds(case, course, layers_that_know(case))


@st.composite
def lives(draw: st.DrawFn) -> tuple[Case, Segmentation]:
    case = draw(cases_with_puts())
    assume(all(case.layers.values()))
    return case, draw(segmentations(len(case.rows)))


@pytest.mark.spec("X4", "B15")
@tries(12)
@given(lives())
def test_an_engine_whose_layer_is_put_to_tells_what_brute_force_tells(life):
    case, cut = life
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        case = put_layers(home, case)
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        engine = LocalEngine(home, stream)
        while engine.batch():
            pass
        engine.close()
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
