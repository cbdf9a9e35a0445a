"""Verify finds that answers hold for every kind of query, and that they do not when one change is taken away."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.checks import verify as verifying
from st_common.config.home import Home
from tests.kit.archived import run_through
from tests.kit.effort import tries
from tests.kit.layer_tables import store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.random_plans import KINDS
from tests.kit.strategies import case_of


def lived(home, case):
    stream = settings_of("grid", case.rules)
    write_log(home.log("grid"), case.rows, range(0, len(case.rows), 15))
    run_through(home, stream)
    return stream


@pytest.mark.spec("X1")
@pytest.mark.parametrize("kind", KINDS)
@tries(8)
@given(seed=st.integers(0, (1 << 48) - 1))
def test_answers_of_a_kind_hold(kind, seed):
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        stream = lived(home, case_of(seed, kind=kind))
        assert [
            found.query for found in verifying.verify(home, stream) if not found.holds
        ] == []


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(679, id="which of the nearest, as a column below"),
        pytest.param(3, id="rows that last until the end mark"),
        pytest.param(33, id="who has no partner in a LEFT JOIN below"),
        pytest.param(2252453, id="a fix that came after a row was told again"),
    ],
)
def test_answers_about_rows_hold(seed, tmp_path):
    home = Home(tmp_path)
    found = verifying.verify(home, lived(home, case_of(seed, kind="nested")))
    assert [one.query for one in found if not one.holds] == []


def assert_holds_with_layers(case):
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        stream = lived(home, store_layers(home, case))
        found = verifying.verify(home, stream)
        assert [one.query for one in found if not one.holds] == []


@pytest.mark.spec("X1", "X3")
@tries(3)
@given(seed=st.integers(0, (1 << 48) - 1))
def test_events_of_fences_at_features_hold(seed):
    assert_holds_with_layers(case_of(seed, kind="fences", layers=True))


@pytest.mark.spec("X1", "X12")
@tries(6)
@given(seed=st.integers(0, (1 << 48) - 1))
def test_answers_of_joins_with_a_layer_hold(seed):
    assert_holds_with_layers(case_of(seed, kind="fixes", layers=True))


@pytest.mark.spec("X1")
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_that_is_taken_away_is_found(kind, tmp_path, monkeypatch):
    for seed in range(
        7, 40
    ):  # the first life in which a query that is there in the end had members
        home = Home(tmp_path / str(seed))
        stream = lived(home, case_of(seed, kind=kind))
        whole = verifying.stream_changes(home, "grid")
        told = whole.to_pandas()
        alive = [found.query for found in verifying.verify(home, stream)]
        is_signed = told["sign"] != 0
        is_now = told["query_version"] == told["query"].map(versions(home))
        is_alive = told["query"].isin(alive) & is_now
        counting = (is_signed & is_alive).to_numpy().nonzero()[0]
        if len(counting):
            break
    monkeypatch.setattr(
        verifying, "stream_changes", lambda *_: whole.slice(0, int(counting[-1]))
    )
    assert not all(found.holds for found in verifying.verify(home, stream))


@pytest.mark.spec("X1", "G8")
def test_another_valid_until_is_found(tmp_path, monkeypatch):
    """The time that a member was told last, an hour later."""
    for seed in range(100):
        home = Home(tmp_path / str(seed))
        stream = lived(home, case_of(seed, kind="until"))
        whole = verifying.stream_changes(home, "grid")
        found = verifying.verify(home, stream)
        assert all(one.holds for one in found)
        changed = [later(whole, one.query) for one in found if one.members]
        if any(changed):
            break
    told = next(filter(None, changed))
    monkeypatch.setattr(verifying, "stream_changes", lambda *_: told)
    (wrong,) = [one for one in verifying.verify(home, stream) if not one.holds]
    assert (wrong.missing, wrong.extra) == (1, 1)


def later(changes, query):
    """The changes with another value of a member that a query was told of last; None where it has no such member."""
    rows = changes.to_pandas()
    last = rows[rows["query"] == query].groupby("object").tail(1)
    told = last[(last["sign"] >= 0) & np.isfinite(last["value"].astype(float))]
    told = told[told["cause"] == "inside"]  # beyond doubt: it has reported since
    if not len(told):
        return None
    rows.loc[told.index[0], "value"] += 3600.0
    return pa.Table.from_pandas(rows, schema=changes.schema, preserve_index=False)


def versions(home):
    """The queries that are there in the end, each with its version."""
    controls = verifying.controls_of(verifying.Log(home.log("grid")), 1 << 62)
    registered = verifying.registered_by(controls, 1.0)
    return {name: query.version for name, query in registered.items()}


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    """Lives by kind and seed, each lived once for all causes that are looked for in it.

    A life is its home and stream, its changes, and of these the rows of queries that are there in the end. Verify reads
    it only.
    """

    @cache
    def life(kind, seed):
        home = Home(tmp_path_factory.mktemp("life"))
        stream = lived(home, case_of(seed, kind=kind))
        whole = verifying.stream_changes(home, "grid")
        told = whole.to_pandas()
        is_now = told["query_version"] == told["query"].map(versions(home))
        return home, stream, whole, told[is_now]

    return life


@pytest.mark.spec("X1", "X3")
@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        *(
            ("fences", cause)
            for cause in ("enter", "leave", "inside", "outside", "cross", "dwell")
        ),
        *(
            ("moving fences", cause)
            for cause in ("enter", "leave", "inside", "dwell", "expired")
        ),
    ],
)
def test_an_event_of_a_fence_that_is_taken_away_is_found(
    kind, cause, lives, monkeypatch
):
    """Also of fences without an answer, where nothing would be missing from a fold."""
    for seed in range(7, 300):
        home, stream, whole, told = lives(kind, seed)
        rows = told.index[told["cause"] == cause]
        if len(rows):
            break
    found = verifying.verify(home, stream)
    assert all(one.holds for one in found)
    without = whole.filter(np.arange(len(whole)) != rows[-1])
    monkeypatch.setattr(verifying, "stream_changes", lambda *_: without)
    wrong = [one.query for one in verifying.verify(home, stream) if not one.holds]
    assert wrong == [told["query"][rows[-1]]]
