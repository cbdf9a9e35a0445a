"""The soak in its short form: all kinds of queries on the local engine, restarts, and a process that is killed."""

import pytest

from tests.kit.soak import live


@pytest.mark.slow
@pytest.mark.spec("X1", "X4", "X6", "P7", "P8")
@pytest.mark.parametrize(("seed", "kills"), [(1, 0), (2, 0), (3, 1)])
def test_a_random_life_of_the_engine_ends_with_equal_answers(tmp_path, seed, kills):
    done = live(tmp_path, seed=seed, rows=150, kills=kills)
    assert done.changes > 10
    assert done.restarts >= kills
