"""Loads a layer: a file's features become the next version of the layer's table, in one commit."""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, Space
from st_common.home import Home
from st_common.layers import delimited, geojson, osm, vector
from st_common.layers.announce import announce, newest_version
from st_common.layers.attribution import attribution_of
from st_common.layers.conversion import DEGREES, converted, space_of
from st_common.layers.faults import Fault, told
from st_common.layers.features import Features, Found, Progress, checked
from st_common.layers.kinds import Kinds, load_kinds
from st_common.layers.options import FileOptions
from st_common.layers.rows import layer_rows
from st_common.layers.stored_faults import store_faults
from st_common.layers.unpacked import STOPS, unpacked
from st_common.observed import note_read
from st_common.partition.groups import require_layer_in
from st_common.partition.store import current
from st_common.settings import conf_dir
from st_common.stream_keys import PLANAR

_AS_IT_SAYS = FileOptions()
_BY_OGR = "ogr2ogr NEW.gpkg FILE makes a GeoPackage of it"
_AS_CSV = "save the sheet as CSV"
_ELSEWHERE = {
    ".gml": ("GML", _BY_OGR),
    ".xml": ("XML", f"of GML {_BY_OGR}; KML is called .kml, OpenStreetMap .osm"),
    ".dxf": ("DXF", _BY_OGR),
    ".dwg": ("DWG", "save it as DXF, then ogr2ogr NEW.gpkg FILE"),
    ".tab": ("MapInfo files", _BY_OGR),
    ".mif": ("MapInfo files", _BY_OGR),
    ".gdb": ("file geodatabases", _BY_OGR),
    ".sqlite": ("SpatiaLite", _BY_OGR),
    ".xlsx": ("spreadsheets", _AS_CSV),
    ".xls": ("spreadsheets", _AS_CSV),
    ".ods": ("spreadsheets", _AS_CSV),
}
"""What is not read, by the ends of files, and what makes something of it that is."""
_GTFS = "these are the stops of a GTFS feed; --table shapes loads its lines"
_NAMED = 3  # rejected features in an error
_SUFFIXES = (
    *osm.SUFFIXES,
    *geojson.SUFFIXES,
    *vector.SUFFIXES,
    *delimited.SUFFIXES,
)


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
    crs: str | None = None,
    options: FileOptions = _AS_IT_SAYS,
    attribution: str | None = None,
    progress: Progress | None = None,
) -> LayerReport:
    """Replaces a layer by the features of a file; says what came of it.

    All rows are replaced in one commit; then every stream's log gets a control row, from which on its queries see the
    new version. A load that died between the two is completed by the next one of any layer.

    Args:
        home: the home folder.
        layer: the layer's name.
        file: .osm.pbf, .osm (also .gz, .bz2), GeoJSON, .shp, .gpkg, .fgb or GeoParquet; all also .gz or in a .zip.
        group: whose regions the layer is spread over.
        kinds: only features of these kinds; the rules of other kinds are left out. A feature has one kind in a layer:
            that of the first rule that matches.
        conf: the folder with layers.toml; else FAIRWAY_CONF, HOME/conf or ./conf.
        space: what coordinates mean where `crs` is None; on the globe others than longitude and latitude are rejected.
        crs: the system into which coordinates are converted, "EPSG:" and a number. None: EPSG:4326 on the globe; on a
            plane they stay as they are.
        options: what the file does not say of itself.
        attribution: whose data it is. None: OpenStreetMap's where the ids of all features are its own.
        progress: called with what is being done and the number of features so far.

    Raises:
        LayerError: the file cannot be read or has no feature that can be used, the attribution is no line of text, or
            the regions of the group have other than two dimensions; the layer stays as it was.
        ConfigError: layers.toml is wrong, or a kind is unknown.
    """
    require_layer_in(current(home, group), layer)
    rules = load_kinds(conf or conf_dir(home.root))
    note_read(file)
    read = partial(read_features, file, rules, kinds=kinds, progress=progress)
    features = read(space=space, crs=crs, options=options)
    _require_some(features, kinds, f"{file} has no feature for layer {layer!r}")
    regions = current(home, group)
    source = attribution_of(pa.array(features.fids, pa.string()), attribution)
    rows = layer_rows(features, regions, attribution=source)
    if progress:
        progress("writing", len(rows))
    version = _replaced(home, layer, rows, features.faults)
    announced = announce(home)
    return LayerReport(
        layer=layer,
        version=version,
        wanted=features.wanted,
        features=len(features.fids),
        rows=len(rows),
        repaired=features.repaired,
        rejected=features.rejected,
        faults=features.faults,
        notes=features.notes,
        by_kind=dict(sorted(Counter(features.kinds.tolist()).items())),
        streams=sorted({one.stream for one in announced if one.layer == layer}),
        group=group,
        region_version=regions.version,
        attribution=source,
    )


def _replaced(home: Home, layer: str, rows: pa.Table, faults: Sequence[Fault]) -> int:
    """Puts rows in the place of a layer's; its new version. What was left out stands in its table before that."""
    table, contract = home.table("layers", layer), load_contract("layers")
    with tables.locked(table):
        after = (newest_version(home, layer) or 0) + 1
        store_faults(home, layer, after, faults)
        return tables.replace(table, rows, contract)


def read_features(
    file: Path,
    rules: Kinds,
    *,
    kinds: Collection[str] | None = None,
    space: Space = GLOBE,
    crs: str | None = None,
    options: FileOptions = _AS_IT_SAYS,
    progress: Progress | None = None,
) -> Features:
    """The features of a file with valid geometries; see `load` for the arguments.

    Raises:
        LayerError: the file cannot be read, or its name does not say what it is.
        ConfigError: a kind is unknown (but in OSM files kinds may also come from the features), or the system.
    """
    if not file.is_file():
        raise LayerError(f"there is no file {file}")
    space = space_of(crs) if crs else space
    target = crs or (None if space.is_flat else DEGREES)
    if target == PLANAR:
        target = None
    with _readable_file(file, options) as inner:
        if inner.name.lower().endswith(osm.SUFFIXES):
            rules, chosen = rules.only(kinds), None
        else:
            rules, chosen = _some(rules, kinds), kinds
        found = _read(inner, rules, options, target=target, progress=progress)
        if inner.name == STOPS and inner != file and options.table is None:
            found.notes.insert(0, _GTFS)
    return checked(found if chosen is None else _of_kinds(found, chosen), space=space)


def _readable_file(file: Path, options: FileOptions) -> AbstractContextManager[Path]:
    """The file itself where its reader unpacks it, else what it holds."""
    name = file.name.lower()
    by_reader = (*osm.SUFFIXES, *(f"{suffix}.gz" for suffix in geojson.SUFFIXES))
    if name.endswith(by_reader):
        return nullcontext(file)
    return unpacked(file, _SUFFIXES, table=options.table)


def _read(
    file: Path,
    rules: Kinds,
    options: FileOptions,
    *,
    target: str | None,
    progress: Progress | None,
) -> Found:
    """The features of a file with the coordinates that are wanted."""
    name = file.name.lower()
    usual: str | None = DEGREES
    said: str | None = None
    if name.endswith(vector.SUFFIXES):
        usual = None
        found, said = vector.read_vector(file, rules, options, progress=progress)
    elif name.endswith(osm.SUFFIXES):
        found = osm.read_osm(file, rules, progress=progress)
    elif name.removesuffix(".gz").endswith(geojson.SUFFIXES):
        found, said = geojson.read_geojson(file, rules, options, progress=progress)
        if said is not None:
            into = f"are converted into {target}" if target else "stay as they are"
            found.notes.append(f"its member crs says {said}: coordinates {into}")
    elif name.endswith(delimited.SUFFIXES):
        usual = None
        found, said = delimited.read_delimited(file, rules, options, target=target)
    else:
        raise _unknown(file)
    source = options.crs or said or usual
    return converted(found, source, target, file=file, lat_lon=options.lat_lon)


def _unknown(file: Path) -> LayerError:
    suffix = file.suffix.lower()
    if suffix in _ELSEWHERE:
        what, hint = _ELSEWHERE[suffix]
        return LayerError(f"{file}: layers are not read from {what}", hint=hint)
    return LayerError(
        f"{file} is of no known format", hint=f"known are {', '.join(_SUFFIXES)}"
    )


def _some(rules: Kinds, kinds: Collection[str] | None) -> Kinds:
    """The rules of these kinds; features may also name a kind that has none."""
    if kinds is None:
        return rules
    return Kinds(tuple(rule for rule in rules.rules if rule.kind in kinds))


def _of_kinds(drafts: Found, kinds: Collection[str]) -> Found:
    rows = [row for row, kind in enumerate(drafts.kinds) if kind in kinds]
    chosen = drafts.only(rows, [drafts.geometries[row] for row in rows])
    chosen.wanted -= len(drafts.kinds) - len(rows)
    return chosen


def _require_some(
    features: Features, kinds: Collection[str] | None, message: str
) -> None:
    """Raises a LayerError where there is no feature, with what became of those that the file has."""
    if len(features.fids):
        return
    if not features.faults:
        none = f"none is of kind {', '.join(kinds) if kinds else 'in layers.toml'}"
        raise LayerError(message, hint=none)
    rejected = ", ".join(
        f"{count} {reason}" for reason, count in features.rejected.items()
    )
    named = told(features.faults, most=_NAMED)
    hint = "; ".join([f"rejected: {rejected}", *features.notes, *named])
    raise LayerError(message, hint=hint)
