"""Filters of users let through what brute force in Python does, on every way to run a stream (SPEC B11, B12)."""

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.partitioning.store import store
from st_common.query.checks import complaints
from st_common.query.plan import Plan
from tests.kit import oracle
from tests.kit.archived import run_through
from tests.kit.effort import tries
from tests.kit.laws import holds, told, told_by_oracle
from tests.kit.layer_tables import REGIONS, store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle_rows import Control
from tests.kit.resident import follow_resident
from tests.kit.strategies import cases, courses, segmentations
from tests.kit.user_filters import STEPS


def filtered(plan, rng, stream):
    """The plan with some filters among its steps, where the product takes them."""
    steps = [*plan.transforms, *rng.choices(STEPS, k=rng.randint(1, 3))]
    rng.shuffle(steps)
    more = replace(plan, transforms=tuple(steps))
    return plan if any(complaints(more, stream)) else more


@st.composite
def filtered_cases(draw, **of):
    """Cases some of whose queries go through filters of users."""
    case = draw(cases(kind=draw(st.sampled_from(("comparing", "fixes"))), **of))
    rng, stream = Random(draw(st.integers(0, 1 << 32))), settings_of("grid", case.rules)
    rows, steps_of = [], {}
    for row in case.rows:
        changed = None
        if isinstance(row, Control) and row.row.get("plan"):
            plan, version = (
                Plan.from_json(row.row["plan"]),
                (row.row["query"], row.row["version"]),
            )
            if version not in steps_of:
                steps_of[version] = filtered(plan, rng, stream).transforms
            # A version whose region changes keeps all else.
            plan = replace(plan, transforms=steps_of[version])
            changed = {**row.row, "plan": plan.to_json()}
        rows.append(replace(row, row=changed) if changed else row)
    assume("thirds" in str(rows) or "loaded" in str(rows))
    return replace(case, rows=tuple(rows))


@st.composite
def lives(draw):
    case = draw(filtered_cases())
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("B11", "B12", "X1", "X2")
@tries(40)
@given(lives())
def test_however_they_are_run_they_let_through_what_python_lets_through(life):
    holds(*life)


@pytest.mark.spec("B11", "B12", "X1")
@tries(8)
@given(filtered_cases(layers=True))
def test_engines_with_layers_in_tables_tell_the_same_and_verify_finds_it_by_the_same_classes(
    case,
):
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        case = store_layers(home, case)
        written = write_log(home.log("grid"), case.rows, range(0, len(case.rows), 15))
        run_through(home, stream)
        changes = tables.read(home.table("changes", "grid"))
        assert [one.query for one in verify(home, stream) if not one.holds] == []
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)


@pytest.mark.spec("B11", "B2", "X1")
@tries(6)
@given(
    filtered_cases(layers=True),
    st.integers(1, 3),
    st.none() | st.integers(0, 99),
    st.data(),
)
def test_tasks_that_break_off_and_share_a_layer_tell_the_same(case, tasks, seed, data):
    assume(all(case.layers.values()))
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        store(home, REGIONS, np.zeros(3, np.int64), "by hand")
        case = store_layers(home, case)
        cut = data.draw(segmentations(len(case.rows)))
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        spread = replace(stream, spark=SparkSettings(spread_layers_mb=0))
        follow_resident(home, spread, shards=2, tasks=tasks, seed=seed)
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
