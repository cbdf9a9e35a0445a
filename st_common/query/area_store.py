"""The named areas of a home: one file of JSON lines in its registry, changed as a whole under the registry's lock.

A query that names an area has the region of then in its plan (SPEC P4); `area_change` says when it gets another one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.errors import LogError
from st_common.query.commit import completed, registry_file
from st_common.record import opened, sealed
from st_common.regions.region import Region
from st_common.regions.registry import Area, region_from_json, region_to_json
from st_common.regions.shapes import text_of

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.query.areas import Areas

FILE = "areas.jsonl"
_SURFACES = ("Polygon", "MultiPolygon")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedArea:
    """A region by its name: who created it, and when (`created_us`, UTC microseconds)."""

    name: str
    region: Region
    owner: str
    created_us: int


def areas(home: Home) -> list[NamedArea]:
    """The named areas of a home, by name.

    Raises:
        LogError: the file has a line that is no area.
    """
    completed(home)
    path = registry_file(home, FILE)
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return [_decoded(line, number) for number, line in enumerate(lines, 1)]


def encoded(named: Iterable[NamedArea]) -> bytes:
    """The file with these areas, by name."""
    ordered = sorted(named, key=lambda area: (area.name.casefold(), area.name))
    return b"".join(_encoded(area) for area in ordered)


@dataclass(frozen=True)
class HomeAreas:
    """The areas and the features of a home, for who reads a text (`st_common.query.areas.Areas`); read when asked.

    Without `streams_of`, which gives the settings of its streams, no query of the text is over two of them.
    """

    home: Home
    streams_of: "Callable[[], Mapping[str, StreamSettings]] | None" = None
    _features: dict[tuple[str, str], Area | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def _named(self) -> dict[str, NamedArea]:
        return {area.name.casefold(): area for area in areas(self.home)}

    @cached_property
    def _layers(self) -> dict[str, int]:
        from st_common.layers.table import layer_names, newest_version

        versions = (
            (name, newest_version(self.home, name)) for name in layer_names(self.home)
        )
        return {name: version for name, version in versions if version is not None}

    def named(self, name: str) -> Region | None:
        """The region of an area; None: there is no such area. Case does not count."""
        area = self._named.get(name.casefold())
        return area.region if area is not None else None

    def as_it_is(self, name: str) -> Region | None:
        """The same: nobody here knows who follows."""
        return self.named(name)

    def names(self) -> Collection[str]:
        """The names of all areas."""
        return [area.name for area in self._named.values()]

    def layers(self) -> Collection[str]:
        """The names of the layers whose features can be named."""
        return list(self._layers)

    def streams(self) -> "Mapping[str, StreamSettings]":
        """The streams that a query may be over, by name."""
        return {} if self.streams_of is None else self.streams_of()

    def group_of(self, layer: str) -> str | None:
        """The group of a layer that there is; None where its table does not say."""
        from st_common.layers.announce import layer_group

        return layer_group(self.home, layer)

    def why_not(self, layer: str, fid: str) -> str:
        """Why the newest load of a layer left a feature out; "" where it did not."""
        return why_not(self.home, layer, fid)

    def feature(self, layer: str, fid: str) -> Area | None:
        """The surface of a feature in the newest version of its layer.

        None: there is no such layer or feature, or it is a line or a point, in which nothing can be.
        """
        chosen = next(
            (name for name in self._layers if name.casefold() == layer.casefold()), None
        )
        if chosen is None:
            return None
        if (chosen, fid) not in self._features:
            self._features[chosen, fid] = _surface(
                self.home, chosen, self._layers[chosen], fid
            )
        return self._features[chosen, fid]


def why_not(home: Home, layer: str, fid: str) -> str:
    """Why the newest load of a layer left a feature out; "" where it did not."""
    from st_common.layers.faults import WORDS
    from st_common.layers.stored_faults import stored_faults

    for one in stored_faults(home, layer):
        if one.fid == fid and not one.is_repaired:
            return f"{one.reason}: {WORDS.get(one.reason, one.reason)}"
    return ""


def _surface(home: Home, layer: str, version: int, fid: str) -> Area | None:
    import shapely  # slow to import, and seldom needed

    from st_common.layers.table import AT_HOME, read_rows

    filters = [("fid", "=", fid), *AT_HOME]
    features = read_rows(
        home,
        layer,
        version,
        columns=["geometry"],
        filters=filters,
    )
    if not len(features):
        return None
    shape = shapely.force_2d(shapely.from_wkb(features["geometry"][0].as_py()))
    if shape.geom_type not in _SURFACES:
        return None
    return Area(wkt=text_of(shape), layer=layer, fid=fid)


def _encoded(area: NamedArea) -> bytes:
    value = {
        "name": area.name,
        "region": region_to_json(area.region),
        "owner": area.owner,
        "created_us": area.created_us,
    }
    return sealed(value) + b"\n"


def _decoded(line: bytes, number: int) -> NamedArea:
    try:
        value = opened(line)
        return NamedArea(**{**value, "region": region_from_json(value["region"])})
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{FILE} of the registry: line {number} is no area") from error


if TYPE_CHECKING:
    _: type[Areas] = HomeAreas
