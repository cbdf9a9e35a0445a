"""The laws of the step when ids share their hashes, and under any key."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.state import intern
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import in_row_order, run_steps, told, told_by_oracle
from tests.kit.strategies import cases, segmentations

WHOLE = intern._siphash


@pytest.mark.spec("S4", "X1")
@tries(30)
@given(cases(), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.data())
def test_ids_that_share_hashes_change_nothing(
    case, shards, hashes, through_bytes, data
):
    cut = data.draw(segmentations(len(case.rows)))
    changes, _, order = run_steps(case, cut)
    with mock.patch.object(
        intern, "_siphash", lambda texts, key: WHOLE(texts, key) % np.uint64(hashes)
    ):
        again, _, _ = run_steps(case, cut, shards=shards, through_bytes=through_bytes)
    assert in_row_order(changes, order) == in_row_order(again, order)
    assert told(again, order) == told_by_oracle(
        oracle.judge(case.rows, layers=case.layers, rules=case.rules).changes
    )
