"""Loads a layer: a file's features become the next version of the layer's table, in one commit."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, Space
from st_common.home import Home
from st_common.layers import geojson, osm
from st_common.layers.announce import announce
from st_common.layers.features import Features, Found, Progress, checked
from st_common.layers.kinds import Kinds, load_kinds
from st_common.layers.rows import layer_rows
from st_common.observed import note_read
from st_common.partition.store import current
from st_common.settings import conf_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """What a load did.

    Attributes:
        layer: the layer's name.
        version: the Delta version of its table.
        wanted: how many features the file has of the kinds that were asked for: `features` and `rejected` together,
            always.
        features: how many were loaded.
        rows: how many rows that made: a feature counts once for each region that it touches.
        repaired: geometries that had to be made valid, or lines that lack nodes.
        rejected: what was left out, by reason.
        by_kind: how many features there are of each kind.
        streams: the streams whose logs were told.
        group: whose regions it is spread over.
        region_version: the version of these; 0: the group has none yet, and all of the layer lies in one region.
    """

    layer: str
    version: int
    wanted: int
    features: int
    rows: int
    repaired: int
    rejected: dict[str, int]
    by_kind: dict[str, int]
    streams: list[str]
    group: str
    region_version: int

    @property
    def warning(self) -> str:
        """What whoever loaded it should know: that there are no regions yet; "" when there are."""
        if self.region_version:
            return ""
        return (
            f"group {self.group!r} has no regions yet: every query on layer {self.layer!r} reads all of it "
            f"(fairway partition {self.group}, then fairway layer spread)"
        )


def load(
    home: Home,
    layer: str,
    file: Path,
    *,
    group: str,
    kinds: Collection[str] | None = None,
    conf: Path | None = None,
    space: Space = GLOBE,
    progress: Progress | None = None,
) -> LayerReport:
    """Replaces a layer by the features of an OSM or GeoJSON file; says what came of it.

    All rows are replaced in one commit; then every stream's log gets a control row, from which on its queries see the
    new version. A load that died between the two is completed by the next one of any layer.

    Args:
        home: the home folder.
        layer: the layer's name.
        file: .osm.pbf, .osm (also .gz, .bz2), or GeoJSON.
        group: whose regions the layer is spread over.
        kinds: only features of these kinds; the rules of other kinds are left out. A feature has one kind in a layer:
            that of the first rule that matches.
        conf: the folder with layers.toml; else FAIRWAY_CONF, HOME/conf or ./conf.
        space: what coordinates mean; on the globe others than longitude and latitude are rejected.
        progress: called with what is being done and the number of features so far.

    Raises:
        LayerError: the file cannot be read, or has no feature that can be used; the layer stays as it was.
        ConfigError: layers.toml is wrong, or a kind is unknown.
    """
    table = home.table("layers", layer)
    rules = load_kinds(conf or conf_dir(home.root))
    note_read(file)
    features = read_features(file, rules, kinds=kinds, space=space, progress=progress)
    if not len(features.fids):
        raise LayerError(
            f"{file} has no feature for layer {layer!r}",
            hint=_why_none(features, kinds),
        )
    regions = current(home, group)
    rows = layer_rows(features, regions)
    if progress:
        progress("writing", len(rows))
    version = tables.replace(table, rows, load_contract("layers"))
    announced = announce(home)
    return LayerReport(
        layer=layer,
        version=version,
        wanted=features.wanted,
        features=len(features.fids),
        rows=len(rows),
        repaired=features.repaired,
        rejected=features.rejected,
        by_kind=dict(sorted(Counter(features.kinds.tolist()).items())),
        streams=sorted({one.stream for one in announced if one.layer == layer}),
        group=group,
        region_version=regions.version,
    )


def read_features(
    file: Path,
    rules: Kinds,
    *,
    kinds: Collection[str] | None = None,
    space: Space = GLOBE,
    progress: Progress | None = None,
) -> Features:
    """The features of an OSM or GeoJSON file with valid geometries; see `load` for the arguments.

    Raises:
        LayerError: the file cannot be read, or its name does not say what it is.
        ConfigError: a kind is unknown (in GeoJSON files kinds may also come from the features).
    """
    name = file.name.lower()
    if not file.is_file():
        raise LayerError(f"there is no file {file}")
    if name.endswith(osm.SUFFIXES):
        return checked(
            osm.read_osm(file, rules.only(kinds), progress=progress),
            space=space,
        )
    if name.removesuffix(".gz").endswith(geojson.SUFFIXES):
        chosen = (
            rules
            if kinds is None
            else Kinds(tuple(rule for rule in rules.rules if rule.kind in kinds))
        )
        drafts = geojson.read_geojson(file, chosen, space=space, progress=progress)
        return checked(
            drafts if kinds is None else _of_kinds(drafts, kinds), space=space
        )
    raise LayerError(
        f"{file} is of no known format",
        hint="known are .osm.pbf, .osm, .osm.gz, .osm.bz2 and .geojson",
    )


def _of_kinds(drafts: Found, kinds: Collection[str]) -> Found:
    others = sum(kind not in kinds for kind in drafts.kinds)
    chosen = Found(
        rejected=drafts.rejected,
        repaired=drafts.repaired,
        wanted=drafts.wanted - others,
    )
    for row in zip(
        drafts.fids, drafts.kinds, drafts.tags, drafts.geometries, strict=True
    ):
        if row[1] in kinds:
            chosen.add(*row)
    return chosen


def _why_none(features: Features, kinds: Collection[str] | None) -> str:
    rejected = ", ".join(
        f"{count} {reason}" for reason, count in features.rejected.items()
    )
    return (
        f"rejected: {rejected}"
        if rejected
        else f"none is of kind {', '.join(kinds) if kinds else 'in layers.toml'}"
    )
