"""How the database is asked about conditions, whatever it costs: what is told may not show which way it was (X13)."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal
from unittest.mock import patch

from st_common.operators.expressions import general as general_conditions
from st_common.operators.expressions import shaped, truth

Way = Literal["pairs", "points", "whole"]
WAYS: tuple[Way, ...] = ("pairs", "points", "whole")
"""About pairs with each shape, about all points with what has a shape, or with every condition as it is written."""


@contextmanager
def asked_by(way: Way) -> Iterator[None]:
    """Within, conditions that need the database are evaluated this way, even if there is one alone."""
    few = math.inf if way == "whole" else 1
    statement_us = -math.inf if way == "pairs" else math.inf
    with ExitStack() as stack:
        stack.enter_context(patch.object(shaped, "FEW", few))
        stack.enter_context(
            patch.object(general_conditions, "STATEMENT_US", statement_us)
        )
        truth.tested_on.cache_clear()
        stack.callback(truth.tested_on.cache_clear)
        yield
