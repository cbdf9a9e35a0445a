"""Filters that queries name, each with a custom value: USING filter('name', 'custom value') (SPEC B10-B12).

A new one is a module with the methods of `protocol.Filter` and a line here.
"""

from st_common.operators.expressions.filters.geojson import GeojsonFilter
from st_common.operators.expressions.filters.key import KeyFilter
from st_common.operators.expressions.filters.property import PropertyFilter
from st_common.operators.expressions.filters.protocol import Filter
from st_common.operators.expressions.filters.wkt import WktFilter

FILTERS: dict[str, Filter] = {
    "geojson": GeojsonFilter(),
    "key": KeyFilter(),
    "property": PropertyFilter(),
    "wkt": WktFilter(),
}
"""By name; `st_common.query.filters` says which there are, and checks their values."""
