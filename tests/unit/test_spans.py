"""A law has a time, and makes as many cases of it as it can; what it has tried is noted, so that others go on."""

from itertools import count

import pytest
from hypothesis import Phase, assume, example, given, seed, settings
from hypothesis import strategies as st

from tests.kit.effort import DEEP, FEWEST, Span, tries
from tests.kit.law_notes import (
    Note,
    add_note,
    left_to_try,
    missing,
    read_notes,
    tenth_of,
)

MANY = 10_000
ANY = st.integers()


def span_of(seconds):
    """A span whose clock says a second more each time that it is asked, and so with each case."""
    ticks = count()
    return Span(seconds, clock=lambda: float(next(ticks)))


def cases_within(seconds, drawn=ANY):
    """The cases of a law that holds, in their order, all of one seed."""
    tried = []

    @seed(7)
    @tries(MANY)
    @given(drawn)
    def law(case):
        tried.append(case)

    with span_of(seconds).limit(law):
        law()
    return tried


def test_a_law_tries_as_many_cases_as_its_time_allows():
    assert [len(cases_within(seconds)) for seconds in (5, 40, 200)] == [5, 40, 200]


def test_a_law_whose_time_is_up_from_the_start_draws_all_the_same():
    assert len(cases_within(0)) == FEWEST
    assert len(set(cases_within(0))) == FEWEST


def test_a_law_ends_by_itself_where_there_is_nothing_more_to_try():
    assert sorted(cases_within(1e9, st.sampled_from("abc"))) == ["a", "b", "c"]


def test_a_law_ends_when_it_has_had_enough():
    tried = []

    @tries(MANY)
    @given(ANY)
    def law(case):
        tried.append(case)

    span = Span(1e9, 25)
    with span.limit(law):
        law()
    assert span.cases == len(tried) == 25


def test_with_more_time_the_same_seed_tries_the_same_cases_first():
    few, many = cases_within(20), cases_within(100)
    assert many[: len(few)] == few


def test_what_a_law_draws_by_itself_may_end_too():
    tried = []

    @tries(MANY)
    @given(st.data())
    def law(data):
        tried.append(data.draw(st.lists(st.integers())))

    with span_of(30).limit(law):
        law()
    assert len(tried) == 30


def test_explicit_examples_run_all_and_are_no_cases():
    tried = []

    @example(-1)
    @example(-2)
    @example(-3)
    @tries(MANY)
    @given(st.integers(min_value=0))
    def law(case):
        tried.append(case)

    span = span_of(0)
    with span.limit(law):
        law()
    assert sorted(case for case in tried if case < 0) == [-3, -2, -1]
    assert len(tried) == 3 + FEWEST
    assert span.cases == FEWEST


def test_what_a_law_does_not_want_is_no_case_of_it():
    tried = []

    @tries(MANY)
    @given(st.integers(0, 1000))
    def law(case):
        assume(case % 2)
        tried.append(case)

    span = span_of(12)
    with span.limit(law):
        law()
    assert span.cases == len(tried) == 12
    assert not span.has_failed


@pytest.mark.parametrize("fail", [AssertionError, pytest.fail.Exception])
def test_the_smallest_case_that_fails_is_looked_for_though_the_time_is_up(fail):
    @seed(7)
    @settings(tries(MANY), phases=tuple(Phase))
    @given(st.integers(0, 1 << 40))
    def law(case):
        if case >= 1234:
            raise fail(f"failed: {case}")

    span = span_of(20)
    with pytest.raises(fail, match=r"(?m)^failed: 1234$"), span.limit(law):
        law()
    assert span.has_failed


def test_a_limit_is_gone_with_its_block():
    tried = []

    @tries(30)
    @given(st.integers())
    def law(case):
        tried.append(case)

    inner = law.hypothesis.inner_test
    for seconds in (3, 2):
        with span_of(seconds).limit(law):
            law()
    assert len(tried) == 5
    assert law.hypothesis.inner_test is inner


# --- what laws have tried ---------------------------------------------------------------------------------------------


def read_back(file, *notes):
    for note in notes:
        add_note(file, note)
    return read_notes(file)


def test_what_a_law_tried_adds_up(tmp_path):
    file = tmp_path / "notes"
    notes = read_back(
        file,
        Note("a", 10, 2.0, False),
        Note("b", 5, 1.0, False),
        Note("a", 30, 4.0, False),
    )
    assert notes == {"a": Note("a", 40, 6.0, False), "b": Note("b", 5, 1.0, False)}
    assert [missing(law, notes) for law in "abc"] == [DEEP - 40, DEEP - 5, DEEP]
    failed = read_back(file, Note("a", 7, 1.0, True))
    assert missing("a", failed) == DEEP


def test_a_law_that_failed_has_to_show_all_its_cases_again(tmp_path):
    file = tmp_path / "notes"
    failed = read_back(file, Note("a", DEEP, 9.0, False), Note("a", 3, 1.0, True))
    assert left_to_try(["a"], failed) == ["a"]
    mended = read_back(file, Note("a", DEEP - 1, 9.0, False))
    assert left_to_try(["a"], mended) == ["a"]
    shown = read_back(file, Note("a", 1, 9.0, False))
    assert left_to_try(["a"], shown) == []


def test_a_file_that_is_not_there_says_that_nothing_was_tried(tmp_path):
    assert read_notes(tmp_path / "none") == {}


def test_the_cheapest_law_comes_first_and_before_it_those_never_tried():
    notes = {
        "dear": Note("dear", 2, 60.0, False),
        "done": Note("done", DEEP, 1.0, False),
        "cheap": Note("cheap", 100, 61.0, False),
    }
    laws = ["dear", "done", "new", "cheap", "newer"]
    assert left_to_try(laws, notes) == ["new", "newer", "cheap", "dear"]


def test_ten_seeds_have_each_law_once_and_each_seed_about_a_tenth():
    laws = [f"tests/laws/test_a.py::test_{number}" for number in range(300)]
    tenths = [tenth_of(laws, seed) for seed in range(4_217, 4_227)]
    assert sorted(law for tenth in tenths for law in tenth) == sorted(laws)
    assert all(15 <= len(tenth) <= 45 for tenth in tenths)
    assert tenth_of(laws, 4_217) == tenth_of(laws, 7)
