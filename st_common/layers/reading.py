"""Reads a file of features of any known format: valid geometries, in the system of coordinates that is wanted."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from st_common.config.stream_values import PLANAR
from st_common.errors import LayerError
from st_common.geometry.space import GLOBE, Space
from st_common.layers import delimited, geojson, osm, vector
from st_common.layers.conversion import DEGREES, converted, space_of
from st_common.layers.features import Features, Found, Progress, checked
from st_common.layers.kinds import Kinds
from st_common.layers.options import FileOptions
from st_common.layers.unpacked import STOPS, unpacked
from st_common.layers.vector import Slice

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
_SUFFIXES = (
    *osm.SUFFIXES,
    *geojson.SUFFIXES,
    *vector.SUFFIXES,
    *delimited.SUFFIXES,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a file, whoever reads it.

    Attributes:
        rules: which tags make which kind.
        kinds: only features of these kinds; the rules of other kinds are left out. A feature has one kind in a layer:
            that of the first rule that matches.
        space: what coordinates mean where `crs` is None; on the globe others than longitude and latitude are rejected.
        crs: the system into which coordinates are converted, "EPSG:" and a number. None: EPSG:4326 on the globe; on a
            plane they stay as they are.
        options: what the file does not say of itself.

    Raises:
        ConfigError: the system is not known.
    """

    rules: Kinds
    kinds: Collection[str] | None = None
    space: Space = GLOBE
    crs: str | None = None
    options: FileOptions = _AS_IT_SAYS

    def __post_init__(self) -> None:
        """Raises a ConfigError where nobody knows the system that is wanted, before anything is read."""
        _ = self.means

    @property
    def of_osm(self) -> Kinds:
        """The rules for a file of OpenStreetMap, whose features name no kinds of their own.

        Raises:
            ConfigError: a kind that is wanted has no rule.
        """
        return self.rules.only(self.kinds)

    @property
    def means(self) -> Space:
        """What the coordinates of the features mean."""
        return space_of(self.crs) if self.crs else self.space

    @property
    def target(self) -> str | None:
        """The system into which coordinates are converted; None: they stay as they are."""
        target = self.crs or (None if self.means.is_flat else DEGREES)
        return None if target == PLANAR else target

    def shaped(self, found: Found, said: str | None, *, file: Path) -> Features:
        """Features with valid geometries in the system that is wanted.

        Args:
            found: as a reader gives them.
            said: the system of their coordinates, as far as the format or the file says it.
            file: named in errors.

        Raises:
            LayerError: nobody says the system of the coordinates, or nobody knows it.
        """
        source, lat_lon = self.options.crs or said, self.options.lat_lon
        moved = converted(found, source, self.target, file=file, lat_lon=lat_lon)
        return checked(moved, space=self.means)


def read_features(
    file: Path, wanted: Wanted, *, progress: Progress | None = None
) -> Features:
    """The features of a file with valid geometries.

    Args:
        file: .osm.pbf, .osm (also .gz, .bz2), GeoJSON, .shp, .gpkg, .fgb or GeoParquet; all also .gz or in a .zip.
        wanted: what of it, and how.
        progress: called with what is being done and the number of features so far.

    Raises:
        LayerError: the file cannot be read, or its name does not say what it is.
        ConfigError: a kind is unknown (in other files than those of OSM kinds may also come from the features).
    """
    if not file.is_file():
        raise LayerError(f"there is no file {file}")
    with _readable_file(file, wanted.options) as inner:
        found, said = _read(inner, wanted, progress)
        if inner.name == STOPS and inner != file and wanted.options.table is None:
            found.notes.insert(0, _GTFS)
        return wanted.shaped(found, said, file=inner)


def slices_of(file: Path, wanted: Wanted, size: int) -> list[Slice]:
    """A file in slices of about so many bytes that `read_slice` reads; none where it is read as a whole.

    Raises:
        LayerError: as of `read_features`.
    """
    if not file.name.lower().endswith(vector.SUFFIXES):
        return []
    read_slice(file, wanted, vector.NOTHING)
    return vector.slices_of(file, wanted.options, size)


def read_slice(file: Path, wanted: Wanted, part: Slice) -> tuple[Found, str | None]:
    """The features of a slice as the file has them, and their system, for `Wanted.shaped`.

    Ids may stand in other slices, too: of features of one id the first of the file counts.
    """
    return _read(file, wanted, None, part=part)


def is_osm(file: Path) -> bool:
    """Whether a file's name says that it is one of OpenStreetMap."""
    return file.name.lower().endswith(osm.SUFFIXES)


def _readable_file(file: Path, options: FileOptions) -> AbstractContextManager[Path]:
    """The file itself where its reader unpacks it, else what it holds."""
    name = file.name.lower()
    by_reader = (*osm.SUFFIXES, *(f"{suffix}.gz" for suffix in geojson.SUFFIXES))
    if name.endswith(by_reader):
        return nullcontext(file)
    return unpacked(file, _SUFFIXES, table=options.table)


def _read(
    file: Path, wanted: Wanted, progress: Progress | None, part: Slice | None = None
) -> tuple[Found, str | None]:
    """The features of the wanted kinds, and the system of their coordinates; None: nobody says it."""
    if is_osm(file):
        return osm.read_osm(file, wanted.of_osm, progress=progress), DEGREES
    name, options = file.name.lower(), wanted.options
    rules = _some(wanted.rules, wanted.kinds)
    if name.endswith(vector.SUFFIXES):
        found, said = vector.read_vector(
            file, rules, options, part=part, progress=progress
        )
    elif name.removesuffix(".gz").endswith(geojson.SUFFIXES):
        found, said = geojson.read_geojson(file, rules, options, progress=progress)
        if said is not None:
            target = wanted.target
            into = f"are converted into {target}" if target else "stay as they are"
            found.notes.append(f"its member crs says {said}: coordinates {into}")
        said = said or DEGREES
    elif name.endswith(delimited.SUFFIXES):
        found, said = delimited.read_delimited(
            file, rules, options, target=wanted.target
        )
    else:
        raise _unknown(file)
    return found if wanted.kinds is None else _of_kinds(found, wanted.kinds), said


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
