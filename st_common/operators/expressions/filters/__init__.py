"""Filters that queries name, each with a custom value: USING filter('name', 'custom value') (SPEC B10-B12).

A new one of ours is a module with the methods of `protocol.Filter` and a line here; those of users are in `users`.
"""

from st_common.operators.expressions.filters.geojson import (
    GeojsonFilter,
    NearFilter,
    StrictFilter,
)
from st_common.operators.expressions.filters.key import KeyFilter
from st_common.operators.expressions.filters.property import PropertyFilter
from st_common.operators.expressions.filters.protocol import Filter
from st_common.operators.expressions.filters.users import UserFilter, user_filter
from st_common.operators.expressions.filters.wkt import WktFilter
from st_common.query.filters import NEAR, STRICT

FILTERS: dict[str, Filter] = {
    "geojson": GeojsonFilter(),
    NEAR: NearFilter(),
    STRICT: StrictFilter(),
    "key": KeyFilter(),
    "property": PropertyFilter(),
    "wkt": WktFilter(),
}
"""By name; `st_common.query.filters` says which there are, and checks their values."""
WHOLE = frozenset((STRICT,))
"""Those of ours that look at whole features."""


def filter_called(name: str) -> Filter | UserFilter:
    """The filter that a query names: one of ours, or of users (see `users.user_filter` for what it raises)."""
    return FILTERS.get(name) or user_filter(name)
