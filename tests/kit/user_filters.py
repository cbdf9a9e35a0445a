"""Filters as users write them, a class each; and what they mean, row by row, said once more for the oracle."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import shapely

from st_common.config.filters import FilterSettings
from st_common.query.comparing import Transform
from st_common.reference.metric import Bools
from tests.kit.oracle_rows import Fix

Columns = Mapping[str, Any]


class Thirds:
    """Of the grid's columns every third, counted from the value on; of pairs those that have as many letters in fid."""

    def filter_tuple(self, element: Any, value: str) -> bool:
        return bool(math.floor(element.x) % 3 != int(value))

    def filter_join_candidate(self, left: Any, right: Any, value: str) -> bool:
        odd = math.floor(left.x + left.y) + len(right.tags) + int(value)
        return bool(odd % 2 == 0 or right.kind == "park")


class Loaded:
    """What has more of `load` than the value, or a name that holds it; of pairs those of surfaces, or of its line."""

    def filter_tuples(self, batch: pa.Table, value: str) -> pa.Array:
        heavy = pc.fill_null(pc.greater(batch["load"], float(value)), False)
        return pc.or_(heavy, pc.match_substring(batch["object"], "a"))

    def filter_join_candidates(
        self, left: pa.Table, right: pa.Table, value: str
    ) -> Bools:
        shapes = shapely.from_wkb(right["geometry"].to_numpy())
        large = shapely.area(shapes) > float(value)
        line = pc.map_lookup(right["tags"].combine_chunks(), pa.scalar("line"), "first")
        taxi = pc.equal(pc.fill_null(line, ""), "taxi").to_numpy(zero_copy_only=False)
        early = pc.less(pc.second(left["event_ts"]), 40).to_numpy()
        passes: Bools = (large | taxi) & early
        return passes


class Picky:
    """Knows no object of the name that the value gives: it raises a KeyError."""

    def filter_tuple(self, element: Any, value: str) -> bool:
        if element.object == value:
            raise KeyError(value)
        return True

    def filter_join_candidate(self, left: Any, right: Any, value: str) -> bool:
        if right.fid == value:
            raise KeyError(value)
        return self.filter_tuple(left, value)


DECLARED = {
    name: FilterSettings(name=name, class_=f"tests.kit.user_filters:{kind.__name__}")
    for name, kind in (("thirds", Thirds), ("loaded", Loaded), ("picky", Picky))
}

STEPS = tuple(
    Transform(kind="filter", name=name, text=text, amount=amount)
    for name, text, amount in (
        *(("thirds", "0", 0.0), ("thirds", "1", 0.0)),
        *(("loaded", "1.5", 0.0), ("loaded", "2", 0.0)),
        *(("property", "kind:taxi", 0.0), ("geojson", None, 0.0), ("key", "a", 0.0)),
        *(("geojson_near", None, 0.25), ("geojson_near", "line:taxi", 1.0)),
        *(("geojson_strict", None, 0.0), ("geojson_strict", "kind:park", 0.0)),
    )
)
"""Steps of a query; those of the built-in filters among them, for all must pass."""


def passes(name: str, value: str, fix: Fix, feature: Columns | None) -> bool:
    """Whether a fix passes, alone or beside a feature: its columns, tags (a dict) and geometry (Shapely)."""
    return _MEANT[name](fix, feature, float(value))


def _thirds(fix: Fix, feature: Columns | None, value: float) -> bool:
    if feature is None:
        return int(fix.x // 1) % 3 != value
    whole = (fix.x + fix.y) // 1
    return (whole + len(feature["tags"]) + value) % 2 == 0 or feature["kind"] == "park"


def _loaded(fix: Fix, feature: Columns | None, value: float) -> bool:
    if feature is None:
        load = fix.attributes.get("load")
        return (load is not None and load > value) or "a" in fix.object
    is_early = fix.event_us // 1_000_000 % 60 < 40
    is_large = feature["geometry"].area > value
    return is_early and (is_large or feature["tags"].get("line") == "taxi")


_MEANT: dict[str, Callable[[Fix, Columns | None, float], bool]] = {
    "thirds": _thirds,
    "loaded": _loaded,
}


def beside(features: Any, row: int) -> Columns:
    """A feature of the reference's columns by its place, as `passes` takes it."""
    of: Sequence[Any] = (
        features.kinds[row],
        features.tags[row],
        features.shapes[row],
    )
    return dict(zip(("kind", "tags", "geometry"), of, strict=True))
