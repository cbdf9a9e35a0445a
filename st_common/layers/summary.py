"""What layers there are, and what is in them."""

from collections import Counter
from dataclasses import dataclass

import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.layers.announce import loaded_layers, required_version
from st_common.layers.attribution import attribution
from st_common.layers.faults import REJECTED, REPAIRED, Fault, counted, features_of
from st_common.layers.stored_faults import stored_faults
from st_common.layers.table import read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSummary:
    """The newest version of a layer, in figures.

    Attributes:
        layer: its name.
        version: the Delta version of its table.
        features: how many it has.
        rows: how many rows these take.
        by_kind: how many features there are of each kind.
        by_region: how many are home in each region.
        box: minx, miny, maxx, maxy of all of them; None where none has a place.
        attribution: whose data it is; None: nothing must be said.
        rejected: how many features its newest load left out, by reason.
        repaired: how many it did not load as they stand in their file.
        faults: each of both, with its id, place and reason.
    """

    layer: str
    version: int
    features: int
    rows: int
    by_kind: dict[str, int]
    by_region: dict[str, int]
    box: tuple[float, float, float, float] | None
    attribution: str | None
    rejected: dict[str, int]
    repaired: int
    faults: tuple[Fault, ...]


def summaries(home: Home) -> list[LayerSummary]:
    """All layers that were loaded, by name."""
    return [summary(home, name) for name in loaded_layers(home)]


def summary(home: Home, layer: str) -> LayerSummary:
    """One layer.

    Raises:
        LayerError: the layer was never loaded.
    """
    version = required_version(home, layer)
    columns = ["region_id", "home", "kind", "minx", "miny", "maxx", "maxy"]
    rows = read_rows(home, layer, version, columns=columns)
    # A feature has a row in every region that it touches, and is home in one.
    at_home = rows.filter(rows["home"])
    placed = at_home.filter(pc.is_finite(at_home["minx"]))
    low = (pc.min(placed[edge]).as_py() for edge in ("minx", "miny"))
    high = (pc.max(placed[edge]).as_py() for edge in ("maxx", "maxy"))
    faults = stored_faults(home, layer)
    return LayerSummary(
        layer=layer,
        version=version,
        features=len(at_home),
        rows=len(rows),
        by_kind=dict(sorted(Counter(at_home["kind"].to_pylist()).items())),
        by_region=dict(sorted(Counter(at_home["region_id"].to_pylist()).items())),
        box=(*low, *high) if len(placed) else None,
        attribution=attribution(home, layer, version),
        rejected=counted(faults, REJECTED),
        repaired=features_of(faults, REPAIRED),
        faults=faults,
    )
