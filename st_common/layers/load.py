"""Loads a layer: a file's features become the next version of the layer's table, in one commit."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from st_common import tables
from st_common.config.environment import conf_dir
from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, Space
from st_common.layers.announce import announce
from st_common.layers.attribution import attribution_of, is_openstreetmap
from st_common.layers.faults import (
    REJECTED,
    REPAIRED,
    Fault,
    counted,
    features_of,
    told,
)
from st_common.layers.features import Features, Progress
from st_common.layers.kinds import load_kinds
from st_common.layers.options import FileOptions
from st_common.layers.reading import Wanted, read_features
from st_common.layers.rows import layer_rows
from st_common.layers.stored_faults import store_faults
from st_common.layers.table import (
    DROPPED,
    declare,
    declared,
    newest_version,
    replace_rows,
    sizes,
    table_path,
)
from st_common.observed import note_read
from st_common.partitioning.groups import require_layer_in
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import current

_AS_IT_SAYS = FileOptions()
_NAMED = 3  # rejected features in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an engine has read of a file.

    Attributes:
        by_kind: how many features there are of each kind.
        faults: what was left out and what was mended.
        notes: what was guessed or taken from the file.
        is_openstreetmap: there are features, and the ids of all are such as OpenStreetMap's have.
        divided: gives the group of the layer regions, by what was read; None: it stays without.
        replace: puts the features in the place of all rows of a layer's table: the table's folder, the regions of its
            group and whose data it is are given to it, under the table's lock.
    """

    by_kind: Mapping[str, int]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    is_openstreetmap: bool
    replace: Callable[[Path, Regions, str | None], None]
    divided: Callable[[Home, str], Regions] | None = None


Engine = Callable[[Path, Wanted], Read]
"""Reads a file: `local`, or `st_common.spark.layers.SparkLayers`."""


def local(file: Path, wanted: Wanted, progress: Progress | None = None) -> Read:
    """Reads a file in this process, and writes the table without a JVM; see `reading.read_features`."""
    features = read_features(file, wanted, progress=progress)
    return Read(
        by_kind=dict(sorted(Counter(features.kinds.tolist()).items())),
        faults=features.faults,
        notes=features.notes,
        is_openstreetmap=is_openstreetmap(pa.array(features.fids, pa.string())),
        replace=partial(_replace, features, progress),
    )


def _replace(
    features: Features,
    progress: Progress | None,
    table: Path,
    regions: Regions,
    attribution: str | None,
) -> None:
    rows = layer_rows(features, regions, attribution=attribution)
    if progress:
        progress("writing", len(rows))
    replace_rows(table, rows)


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
        rejected: how many were left out, by reason.
        faults: each feature that was left out or mended, with its id, place and reason.
        notes: what was guessed or taken from the file.
        by_kind: how many features there are of each kind.
        streams: the streams whose logs were told.
        group: whose regions it is spread over.
        region_version: the version of these; 0: the group has none yet, and all of the layer lies in one region.
        attribution: whose data it is, as it is said wherever the layer is shown; None: nothing must be.
    """

    layer: str
    version: int
    wanted: int
    features: int
    rows: int
    repaired: int
    rejected: dict[str, int]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    by_kind: dict[str, int]
    streams: list[str]
    group: str
    region_version: int
    attribution: str | None

    @property
    def warning(self) -> str:
        """What whoever loaded it should know: that there are no regions yet; "" when there are."""
        if self.region_version:
            return ""
        return (
            f"group {self.group!r} has no regions yet: every query on layer {self.layer!r} reads all of it "
            f"(fairway partition {self.group} makes them)"
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
    crs: str | None = None,
    options: FileOptions = _AS_IT_SAYS,
    attribution: str | None = None,
    engine: Engine = local,
) -> LayerReport:
    """Replaces a layer by the features of a file; says what came of it.

    All rows are replaced in one commit; then every stream's log gets a control row, from which on its queries see the
    new version. A load that died between the two is completed by the next one of any layer.

    Args:
        home: the home folder.
        layer: the layer's name.
        file: .osm.pbf, .osm (also .gz, .bz2), GeoJSON, .shp, .gpkg, .fgb or GeoParquet; all also .gz or in a .zip.
        group: whose regions the layer is spread over.
        kinds: only features of these kinds, see `reading.Wanted`.
        conf: the folder with layers.toml; else FAIRWAY_CONF, HOME/conf or ./conf.
        space: what coordinates mean where `crs` is None, see `reading.Wanted`.
        crs: the system into which coordinates are converted, see `reading.Wanted`.
        options: what the file does not say of itself.
        attribution: whose data it is. None: OpenStreetMap's where the ids of all features are its own.
        engine: reads the file and writes the table.

    Raises:
        LayerError: the file cannot be read or has no feature that can be used, the attribution is no line of text, or
            the regions of the group have other than two dimensions; the layer stays as it was.
        ConfigError: layers.toml is wrong, or a kind is unknown.
    """
    require_layer_in(current(home, group), layer)
    rules = load_kinds(conf or conf_dir(home.root))
    note_read(file)
    read = engine(file, Wanted(rules, kinds, space, crs, options))
    _require_some(read, kinds, f"{file} has no feature for layer {layer!r}")
    source = attribution_of(attribution, is_openstreetmap=read.is_openstreetmap)
    table = table_path(home, layer)
    with tables.locked(table):
        regions = current(home, group)
        if not regions.version and read.divided is not None:
            regions = read.divided(home, group)
        if declared(table) == DROPPED:
            declare(table, "")
        after = (newest_version(home, layer) or 0) + 1
        # What was left out stands in its table before the layer: a load that dies in between is not to be seen.
        store_faults(home, layer, after, read.faults)
        read.replace(table, regions, source)
        version = newest_version(home, layer) or 0
        by_region = sizes(home, layer, version)
    announced = announce(home)
    rejected, features = counted(read.faults, REJECTED), sum(read.by_kind.values())
    return LayerReport(
        layer=layer,
        version=version,
        wanted=features + sum(rejected.values()),
        features=features,
        rows=sum(rows for rows, _ in by_region.values()),
        repaired=features_of(read.faults, REPAIRED),
        rejected=rejected,
        faults=read.faults,
        notes=read.notes,
        by_kind=dict(read.by_kind),
        streams=sorted({one.stream for one in announced if one.layer == layer}),
        group=group,
        region_version=regions.version,
        attribution=source,
    )


def _require_some(read: Read, kinds: Collection[str] | None, message: str) -> None:
    """Raises a LayerError where there is no feature, with what became of those that the file has."""
    if read.by_kind:
        return
    if not read.faults:
        none = f"none is of kind {', '.join(kinds) if kinds else 'in layers.toml'}"
        raise LayerError(message, hint=none)
    counts = counted(read.faults, REJECTED)
    rejected = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    named = told(read.faults, most=_NAMED)
    raise LayerError(
        message, hint="; ".join([f"rejected: {rejected}", *read.notes, *named])
    )
