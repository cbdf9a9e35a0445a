"""Which queries look for others around an object alone, and how far: of those it is known who may be of interest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.operators.arrays.numbered import numbered
from st_common.operators.guests.cells import Extent
from st_common.operators.state.intern import Sought
from st_common.query.plan import Plan
from st_common.regions.region import AroundObject, Extents

_TOLD = ("changes", "every", "istream", "dstream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """Objects that queries go with, each once, and how far these look around it; n of them.

    Attributes:
        focals: their ids.
        extent: n rows: the farthest that a query of each object looks.
    """

    focals: Sought
    extent: Extent

    def __len__(self) -> int:
        return len(self.focals)


def looks_nearby(plan: Plan) -> bool:
    """Whether a plan asks for others within a region around one object, and for nothing else of them.

    Example:
        SELECT * FROM buses INSIDE ('M', 'a', 500 m) WHERE speed_mps > 3     yes
        SELECT * FROM buses KNN (3, 'a')                                     no: anybody may be the third
        SELECT COUNT(*) FROM buses INSIDE ('M', 'a', 500 m)                  no
    """
    if not isinstance(plan.inside, AroundObject) or plan.emit not in _TOLD:
        return False
    bare = replace(plan, inside=None, where=None, columns=(), order="auto")
    return replace(bare, emit="changes") == Plan(stream=plan.stream)


def nearby_of(plans: Iterable[Plan]) -> Nearby:
    """What some plans look for; those that do not look nearby are passed over."""
    regions = [
        plan.inside
        for plan in plans
        if isinstance(plan.inside, AroundObject) and looks_nearby(plan)
    ]
    at = numbered(region.focal for region in regions)
    focal = np.array([at[region.focal] for region in regions], np.int64)
    columns = _columns([region.extents for region in regions])
    return Nearby(
        focals=Sought(pa.array(list(at), pa.string())),
        extent=Extent(**_farthest(columns, focal, len(at))),
    )


def joined(parts: Sequence[Nearby]) -> Nearby:
    """What several look for; an object may stand in it more than once."""
    ids = pa.concat_arrays([pa.array([], pa.string()), *(p.focals.ids for p in parts)])
    columns = {
        name: np.concatenate([np.empty(0), *(getattr(p.extent, name) for p in parts)])
        for name in Extent.__dataclass_fields__
    }
    return Nearby(focals=Sought(ids), extent=Extent(**columns))


def _columns(sizes: Sequence[Extents]) -> dict[str, np.ndarray]:
    """The columns of `Extent` over regions."""
    width = np.array([size.width for size in sizes], float) / 2
    height = np.array([size.height for size in sizes], float) / 2
    metres = np.array([size.metres for size in sizes], bool)
    return {
        "half_width": np.where(metres, 0.0, width),
        "half_height": np.where(metres, 0.0, height),
        "half_width_m": np.where(metres, width, 0.0),
        "half_height_m": np.where(metres, height, 0.0),
        "radius_m": np.array([size.radius_m for size in sizes], float),
    }


def _farthest(
    columns: Mapping[str, np.ndarray], focal: np.ndarray, count: int
) -> dict[str, np.ndarray]:
    """The largest value of each object."""
    out = {}
    for name, values in columns.items():
        out[name] = np.zeros(count)
        np.maximum.at(out[name], focal, values)
    return out
