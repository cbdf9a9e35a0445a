"""Joins with a layer of queries about one object each cost what qualifies, not queries times fixes (SPEC X13)."""

import pytest

from bench.forms import cars, squares_of
from bench.text_forms import TEXT_FORMS
from bench.ticks import Work, run
from st_common.operators.state.settings import Settings

OBJECTS = 60


def ran(form, queries, *, objects=OBJECTS, rounds=2):
    """What the step tells and counts when so many queries of a form are judged on some rounds of cars."""
    work = Work(
        plans=TEXT_FORMS[form](queries, objects),
        batches=list(cars(objects, rounds)),
        settings=Settings(),
        layer=squares_of(),
    )
    _, changes, counters = run(work)
    return sum(map(len, changes)), counters


@pytest.mark.spec("X13", "P8")
@pytest.mark.parametrize(
    "form", ["layer join WHERE one object and a tag", "INSIDE FEATURE of a car"]
)
def test_a_join_looks_at_the_fixes_of_its_own_object(form):
    (_, few), (_, many) = ran(form, 6), ran(form, OBJECTS)
    assert few.probed == many.probed == 2 * OBJECTS
    assert many.enters >= few.enters
    assert many.matched <= 2 * OBJECTS  # a car is in one square at most


@pytest.mark.spec("X13")
@pytest.mark.parametrize("form", sorted({*TEXT_FORMS} - {"INSIDE FEATURE of a car"}))
def test_every_form_of_the_bench_tells_something(form):
    told, _ = ran(form, OBJECTS, objects=4_000, rounds=4)
    assert told > 0
