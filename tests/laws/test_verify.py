"""Verify finds that answers hold for every kind of query, and that they do not when one change is taken away."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.home import Home
from st_common.query.plan import Plan
from st_common.serving import verify as verifying
from st_common.testing.effort import tries
from st_common.testing.layer_tables import store_layers
from st_common.testing.log_writer import settings_of, write_log
from st_common.testing.oracle import Control
from st_common.testing.random_plans import KINDS
from st_common.testing.strategies import case_of


def with_answers(case):
    """The case with fences that tell of ENTER and EXIT: others have no answer that could be wrong."""
    rows = []
    for row in case.rows:
        if isinstance(row, Control) and "plan" in row.row:
            plan = Plan.from_json(row.row["plan"])
            if plan.fence is not None:
                asked = replace(plan.fence, events=("enter", "exit"), dwell_s=None)
                plan = replace(plan, fence=asked)
            rows.append(replace(row, row={**row.row, "plan": plan.to_json()}))
        else:
            rows.append(row)
    return replace(case, rows=tuple(rows))


def lived(home, case):
    stream = settings_of("grid", case.rules)
    write_log(home.log("grid"), case.rows, range(0, len(case.rows), 15))
    engine, archive = LocalEngine(home, stream), Archive(home, stream)
    while engine.batch():
        pass
    engine.close()
    while archive.batch():
        pass
    return stream


@pytest.mark.spec("X1")
@pytest.mark.parametrize("kind", KINDS)
@tries(3)
@given(seed=st.integers(0, (1 << 48) - 1))
def test_answers_of_a_kind_hold(kind, seed):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        stream = lived(home, case_of(seed, kind=kind))
        assert [
            found.query for found in verifying.verify(home, stream) if not found.holds
        ] == []


@pytest.mark.spec("X1", "X3")
@tries(3)
@given(seed=st.integers(0, (1 << 48) - 1))
def test_answers_of_fences_at_features_hold(seed):
    case = with_answers(case_of(seed, kind="fences", layers=True))
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        stream = lived(home, store_layers(home, case))
        found = verifying.verify(home, stream)
        assert [one.query for one in found if not one.holds] == []


@pytest.mark.spec("X1")
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_is_taken_away_is_found(kind, tmp_path, monkeypatch):
    for seed in range(
        7, 40
    ):  # the first life in which a query that is there in the end had members
        home = Home(tmp_path / str(seed))
        stream = lived(home, with_answers(case_of(seed, kind=kind)))
        whole = verifying.stream_changes(home, "grid")
        told = whole.to_pandas()
        alive = [found.query for found in verifying.verify(home, stream)]
        counting = (
            ((told["cause"] != "inside") & told["query"].isin(alive))
            .to_numpy()
            .nonzero()[0]
        )
        if len(counting):
            break
    monkeypatch.setattr(
        verifying, "stream_changes", lambda *_: whole.slice(0, int(counting[-1]))
    )
    assert not all(found.holds for found in verifying.verify(home, stream))
