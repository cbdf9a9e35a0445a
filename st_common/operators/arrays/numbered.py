"""Different values by number: what columns hold in the place of texts, filters and rules.

values      taxi   bus   taxi   van
numbered    taxi 0, bus 1, van 2
"""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Value = TypeVar("Value", bound=Hashable)


def numbered(values: Iterable[Value]) -> dict[Value, int]:
    """The number of each different value, from 0 on, in the order in which they first come."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}
