"""The nine BerlinMOD queries on a few vehicles: every cell is that of brute force."""

import pytest

from bench import berlinmod9_corpus as corpus
from bench.berlinmod9 import are_equal, ran, statements, told_rows
from bench.berlinmod9_brute import brute_force


@pytest.mark.spec("X1", "X12")
def test_every_cell_of_a_small_corpus_is_that_of_brute_force(tmp_path):
    fixes = corpus.made(8, 60)
    brute, cells = brute_force(fixes), set()
    for query, text in statements(fixes).items():
        home, _ = ran(tmp_path / query, text, fixes)
        for cell, rows in told_rows(home, query, fixes).items():
            assert rows
            assert are_equal(rows, brute[cell]), cell
            cells.add(cell)
    forms = ("continuous", "windowed", "snapshot")
    assert cells == {f"Q{n}-{form}" for n in range(1, 10) for form in forms}


def test_rows_that_differ_in_one_value_or_one_key_are_not_equal():
    rows = [(1, "a", 2.5), (2, "b", 3.5)]
    assert are_equal(rows, [(2, "b", "3.5001"), (1, "a", "2.5")])
    assert not are_equal(rows, [(1, "a", 2.5), (2, "b", 3.6)])
    assert not are_equal(rows, [(1, "a", 2.5), (2, "c", 3.5)])
    assert not are_equal(rows, rows[:1])
