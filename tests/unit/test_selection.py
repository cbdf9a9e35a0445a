"""Who satisfies the conditions below neighbours and regions that move: what is looked at for it, and what is kept."""

from dataclasses import replace

import numpy as np
import pytest

from bench.forms import FORMS, cars
from bench.ticks import Work, packets_of
from st_common.operators.arrays import bits
from st_common.operators.expressions import evaluation as expressions
from st_common.operators.expressions import truth
from st_common.operators.runtime.stages import step
from st_common.operators.skeleton import selection
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn import eligibility

CARS, QUERIES, ROUNDS = 2_000, 400, 3


@pytest.fixture
def looked(monkeypatch):
    """How many pairs of a query and an object were looked at, and how many conditions the database was asked.

    `rows` of pairs were given to it in so many `statements`.
    """
    counted = {"pairs": 0, "asked": 0, "rows": 0, "statements": 0}
    hold, pairs, evaluated, mask_of = (
        truth.hold,
        selection.Lists.pairs,
        expressions.evaluated,
        expressions.mask_of,
    )

    def holding(known, seen, number, point):
        counted["pairs"] += len(number)
        return hold(known, seen, number, point)

    def listing(lists, rule):
        found = pairs(lists, rule)
        counted["pairs"] += len(found[0])
        return found

    def evaluating(texts, table, **of):
        counted["asked"] += len(texts)
        return evaluated(texts, table, **of)

    def masking(text, table):
        counted["rows"] += len(table)
        counted["statements"] += 1
        return mask_of(text, table)

    monkeypatch.setattr(truth, "hold", holding)
    monkeypatch.setattr(eligibility, "hold", holding)
    monkeypatch.setattr(selection.Lists, "pairs", listing)
    monkeypatch.setattr(expressions, "evaluated", evaluating)
    monkeypatch.setattr(expressions, "mask_of", masking)
    return counted


def told(form, where=None):
    """How many changes the queries of a form tell, and what the last state keeps of who satisfies their conditions.

    `where` gives each another condition, by its number.
    """
    state, changes, plans = State(), 0, FORMS[form](QUERIES, CARS)
    if where is not None:
        plans = [replace(plan, where=where(n)) for n, plan in enumerate(plans)]
    for packets in packets_of(
        Work(
            plans=plans,
            batches=list(cars(CARS, ROUNDS)),
            settings=Settings(),
        )
    ):
        done = step(state, packets, Settings(), lambda *_: None)
        state, changes = done.state, changes + len(done.changes)
    kinds = state.memo.kinds if state.memo is not None else {}
    return changes, [memo.held for memo in kinds.values() if memo.held is not None]


@pytest.mark.spec("X13", "P8")
@pytest.mark.parametrize(
    "form",
    [
        "moving circle WHERE a condition of its own",
        "5 nearest WHERE a kind",
        "5 nearest WHERE one of 100 classes",
        "5 nearest WHERE a condition of its own",
        "pairs in a box WHERE a condition of its own",
        "pairs in a moving circle WHERE a condition of its own",
    ],
)
def test_conditions_are_tested_where_a_query_and_an_object_meet(form, looked):
    changes, held = told(form)
    assert changes > ROUNDS
    assert looked["asked"] == 0
    assert 0 < looked["pairs"] < 100 * ROUNDS * QUERIES < ROUNDS * QUERIES * CARS / 10
    assert all(not one.bits.size and not one.keys.size for one in held)


@pytest.mark.spec("X13", "P8")
@pytest.mark.parametrize(
    "form",
    [
        "box WHERE an expression of its own",
        "moving circle WHERE an expression of its own",
        "5 nearest WHERE an expression of its own",
    ],
)
def test_conditions_of_one_shape_are_asked_of_pairs(form, looked):
    changes, held = told(form)
    assert changes > ROUNDS
    assert looked["asked"] < 5 * ROUNDS  # the last few of a search
    assert 0 < looked["rows"] < ROUNDS * QUERIES * CARS / 10
    assert looked["statements"] < 30 * ROUNDS
    assert all(not one.bits.size and not one.keys.size for one in held)


@pytest.mark.spec("X13", "P8")
@pytest.mark.parametrize(
    "form", ["moving circle WHERE an expression of its own", "5 nearest"]
)
def test_conditions_without_a_shape_are_asked_once_a_run_and_kept_as_bits(form, looked):
    changes, held = told(
        form, lambda number: f"power(load, {number}) > 0 and load < {number}"
    )
    assert changes > ROUNDS
    assert looked["asked"] == ROUNDS * QUERIES
    assert [one.bits.shape for one in held] == [(CARS, QUERIES // 8)]


RARE = "abs(load - {}) < 0.5 AND lower(object) <> 'o{}' AND y * 2 < 3000"


@pytest.mark.spec("X13", "G5")
def test_a_rare_condition_of_a_shape_costs_a_list_and_no_search_of_everything(looked):
    """Some 3 of 2,000 cars satisfy each: the nearest five are all of them."""
    changes, _ = told("5 nearest", lambda number: RARE.format(number % 20, number))
    assert changes > ROUNDS
    assert looked["asked"] <= ROUNDS * QUERIES
    assert looked["rows"] < ROUNDS * QUERIES * CARS


@pytest.mark.spec("X13")
def test_each_answer_is_a_bit():
    rng = np.random.default_rng(3)
    for questions, rows in ((0, 5), (5, 0), (9, 3), (1 + 2 * bits.TOGETHER, 7)):
        answers = rng.random((questions, rows)) < 0.5
        found = bits.asked_together(
            questions, rows, lambda start, end, of=answers: of[start:end]
        )
        assert found.nbytes == rows * -(-questions // 8)
        question, row = np.divmod(np.arange(questions * rows), max(rows, 1))
        assert (bits.bit_of(found, row, question) == answers.ravel()).all()
