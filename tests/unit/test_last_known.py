"""The last word of each object against a loop that remembers."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from st_common.formats.last_known import LastKnown

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.booleans()))


@given(ROWS)
def test_each_record_knows_what_its_object_said_last(rows):
    memory: dict[str, int] = {}
    expected = []
    for number, (name, says) in enumerate(rows):
        if says and name is not None:
            memory[name] = number
        expected.append(memory.get(name, -1))
    objects = pa.array([name for name, _ in rows], pa.string())
    said = np.array([says for _, says in rows], bool)
    assert LastKnown(objects).rows(said).tolist() == expected
