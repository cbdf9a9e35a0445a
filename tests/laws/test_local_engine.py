"""The laws on the local engine: a real log, real tables, restarts at random places."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.engine import local
from tests.kit import oracle, place_fig1
from tests.kit.effort import tries
from tests.kit.laws import in_row_order, run_steps, told, told_by_oracle
from tests.kit.log_writer import settings_of, write_log
from tests.kit.strategies import MARGINS, cases, segmentations

ACTS = ("batch", "batch", "batch", "commit", "store", "crash")


@st.composite
def lives(draw):
    """A case, how its log is cut, and what the engine goes through."""
    case = draw(cases(layers=False))
    return (
        case,
        draw(segmentations(len(case.rows))),
        draw(st.lists(st.sampled_from(ACTS), max_size=12)),
    )


def run_life(home, stream, acts):
    """Runs the engine through the acts, each batch one segment; a crash forgets everything that is not on disk."""
    engine = local.LocalEngine(home, stream)
    for act in acts:
        if act == "crash":
            engine._journal.close()  # as the system does for a dead process
            engine = local.LocalEngine(home, stream)
        else:
            getattr(engine, act)()
    while engine.batch():
        pass
    engine.close()
    return tables.read(home.table("changes", stream.name))


@pytest.mark.spec("X1", "X2", "X6", "P1")
@tries(15)
@given(lives(), st.sampled_from(MARGINS))
def test_a_log_read_by_an_engine_that_crashes_tells_what_brute_force_tells(
    life, margin
):
    case, cut, acts = life
    with tempfile.TemporaryDirectory() as folder:
        home, stream = (
            Home(Path(folder)),
            settings_of("grid", case.rules, margin=margin),
        )
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        local_bytes, local.BATCH_BYTES = local.BATCH_BYTES, 1
        try:
            changes = run_life(home, stream, acts)
        finally:
            local.BATCH_BYTES = local_bytes
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)
    ordered = changes.sort_by([("position", "ascending"), ("seq", "ascending")])
    again, _, order = run_steps(case, cut)
    assert in_row_order(ordered, written.order) == in_row_order(again, order)


@pytest.mark.spec("P6")
def test_fig_1_of_place_nine_objects_five_queries_four_changes(tmp_path):
    home, stream = Home(tmp_path), settings_of("place", oracle.Rules())
    rows = place_fig1.rows()
    written = write_log(home.log("place"), rows, [place_fig1.first_of_t1()])
    changes = run_life(home, stream, ["batch"])
    net = {}
    for row in changes.to_pylist():
        if written.order[row["position"]] >= place_fig1.first_of_t1():
            pair = row["query"], row["object"]
            net[pair] = net.get(pair, 0) + row["sign"]
    assert {
        (query, sign, name) for (query, name), sign in net.items() if sign
    } == place_fig1.CHANGES
