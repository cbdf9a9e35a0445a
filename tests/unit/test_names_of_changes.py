"""Names in tables of changes, whose dictionaries Arrow unifies again and again on their way."""

import numpy as np
import pyarrow as pa
import pytest

from st_common.operators.state.intern import Interner
from st_common.operators.state.targets import NO_PARTNER
from st_common.operators.turn.changes import named

pytestmark = pytest.mark.spec("S2")


def test_under_a_null_stands_a_name_too_however_often_dictionaries_are_unified():
    """Arrow looks up what stands there: of a place that is none it reads foreign memory, and the next time beyond."""
    draw = np.random.default_rng(1)
    for count in range(1, 60):
        ids = [f"{count}-{n}" for n in range(count)]
        interner = Interner(pa.array(ids), np.arange(count, dtype=np.uint64))
        some = np.r_[NO_PARTNER, draw.integers(0, count, 5)]
        none = np.full(3, NO_PARTNER)
        parts = [named(one, interner) for one in (some, none, some[::-1], none)]
        column = pa.chunked_array(parts)
        texts = [ids[n] if n >= 0 else None for n in (*some, *none, *some[::-1], *none)]
        for _ in range(3):
            column = column.unify_dictionaries()
            assert column.to_pylist() == texts
            for part in column.chunks:
                stored = np.frombuffer(part.indices.buffers()[1], np.int32)[: len(part)]
                assert ((stored >= 0) & (stored < len(part.dictionary))).all()
