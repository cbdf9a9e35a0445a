"""How many statements of the database a run evaluates: few where queries share their work, however many there are."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock, patch

from st_common.operators.expressions import evaluation


@contextmanager
def counted_statements() -> Iterator[Mock]:
    """Counts the statements of the body of a `with`: `call_count` of what it gives."""
    with patch.object(
        evaluation,
        "_selected",
        side_effect=evaluation._selected,
    ) as evaluated:
        yield evaluated
