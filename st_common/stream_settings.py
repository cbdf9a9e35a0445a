"""The settings of one stream as values, and what of them cannot stand beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from st_common.crs import unit_of_crs
from st_common.entry_filter import EntryFilter
from st_common.errors import ConfigError
from st_common.feed_keys import SourceSettings
from st_common.formats.format import FORMAT_KEYS
from st_common.formats.format_settings import parts
from st_common.formats.registry import format_of
from st_common.home import DEFAULT_GROUP
from st_common.position_filter import PositionFilter
from st_common.spark_keys import SparkSettings
from st_common.stream_columns import Columns
from st_common.stream_keys import FILTER_COLUMNS, PLANAR
from st_common.times import COUNTED_PER_S
from st_common.units import unit_of

if TYPE_CHECKING:
    from st_common.geometry.space import Space

Engine = Literal["spark", "local"]
Codec = Literal["packet", "raw"]
AttributeType = Literal["string", "double", "long", "bool"]

CLEANING = 2  # by which rules values are cleaned that come from now on; 2: lines of names are called `header`
PUBLIC_ID_KEY = "0123456789123456"  # of streams from before there were others


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """One stream as `conf/streams.toml` describes it. Seconds, metres per second; None means off.

    What is plain by its name is left out here.

    Attributes:
        query: whose rows feed it, where `capture` is not told; None: nobody knows.
        crs: "EPSG:4326" (degrees), another EPSG number, or "planar", a plane without a place on Earth.
        time_unit: `s`, `ms`, `us`, `ns`, `excel`, `excel1904`, `iso`, `rfc2822`, or a format such as "%d/%m/%Y".
        time_zone: where clocks stand that show times without a zone: "Europe/Berlin"; None: in UTC.
        attributes: further columns by name, with their types.
        units: of attributes that have one, such as "km/h": numbers with a unit are compared in it.
        encoding: of texts, as Python calls it.
        decimal: what stands in front of the decimals of numbers in texts.
        coordinates: how degrees are written: "degrees", "e7" (ten-millionths), "nmea" (degrees and minutes in one), ..
        place_order: of two numbers in the column `place`: "lat lon" or "lon lat"; on a plane lat is y.
        quote: of CSV; "" for none.
        skip_lines: how many lines at the beginning of a file are no records; they never reach the log.
        records: the key under which a JSON document has its records; None: they stand by themselves.
        nulls: texts that stand for a missing value in any field, beside the empty one.
        where: which records may be fixes at all; None: all.
        drop_null_island: exactly 0, 0 is no place; None: as the format did before there was this setting.
        cleaning: nothing that people set: by which rules values are cleaned (`decode.cleaning`); 0: by none, as logs
            from before there were any.
        position_filter: which fixes change nothing.
        lateness_s: how far the clock stays behind the largest event time: so long a fix may come out of order.
        silence_s: an object that said nothing for so long leaves every answer about the present.
        max_ahead_s: a fix whose time is so far past its arrival is rejected.
        max_jump_s: a fix that leaps so far ahead of all fixes before is rejected, unless others confirm it.
        max_speed_mps: how fast objects are at most; with `silence_s`, how wide caches may be.
        moving: False: every shard gets only its own fixes, and queries that are judged at ticks are refused.
        tick_s: the event time between two ticks.
        cache_share: the part of max_speed x silence by which a moving query's cache area is wider than its region
            (SPEC G6); without both settings, or with 0, there is no cache.
        cache_refills: False: caches are never filled anew, as in the paper: what they miss is found and counted.
        window_rows: how many of its newest fixes a query with CQL's windows keeps of each object at most.
        latest_every: k of the levels of storage (SPEC P2): which readings the table `latest` takes.
        latest_flush_s: T of them: how often it is flushed.
        snapshot_s: T_archive: the event time between two snapshots.
        group: whose regions its positions are stored by.
        codec: how large segments are stored at capture.
        raw_days: how long the raw bytes of a packet stay.
        log_days: how long the log keeps records that no reader needs any more; None: for ever.
        positions_days: how many closed days of fixes are kept in `positions`, 0: none; None: as the contract says.
        changes_days: the same of `changes`.
        spark: where the engine `spark` runs, and how much of a machine it takes.
        sources: where its records come from, by name; `fairway capture` runs them.
        id_key: nothing that people set: engines take it from the stream's topology. It keys the hashes by which objects
            are found and dealt out to shards; the default is that of streams from before there were others.
    """

    name: str
    format: str
    columns: Columns
    query: str | None = None
    crs: str = "EPSG:4326"
    time_unit: str = "iso"
    time_zone: str | None = None
    attributes: Mapping[str, AttributeType] = field(default_factory=dict, hash=False)
    units: Mapping[str, str] = field(default_factory=dict, hash=False)
    encoding: str = "utf-8"
    decimal: str = "."
    coordinates: str = "degrees"
    place_order: str | None = None
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    skip_lines: int = 0
    records: str | None = None
    nulls: tuple[str, ...] = ()
    where: EntryFilter | None = None
    drop_null_island: bool | None = None
    cleaning: int = 0
    position_filter: PositionFilter | None = None
    lateness_s: float = 0.0
    silence_s: float | None = None
    max_ahead_s: float | None = 60.0
    max_jump_s: float | None = 86_400.0
    max_speed_mps: float | None = None
    moving: bool = True
    tick_s: float = 1.0
    cache_share: float = 1.0
    cache_refills: bool = True
    window_rows: int = 10_000
    latest_every: int = 1
    latest_flush_s: float = 60.0
    snapshot_s: float | None = 3600.0
    shards: int = 2
    group: str = DEFAULT_GROUP
    running: bool = False
    engine: Engine = "local"
    codec: Codec = "raw"
    raw_days: float | None = 30.0
    log_days: float | None = None
    positions_days: int | None = None
    changes_days: int | None = None
    spark: SparkSettings = field(default_factory=SparkSettings)
    sources: Mapping[str, SourceSettings] = field(default_factory=dict, hash=False)
    id_key: str = field(default=PUBLIC_ID_KEY, repr=False)

    @property
    def accuracy_unit_m(self) -> float:
        """How many metres one unit of the filter's attribute of accuracy is; 1 without one."""
        name = self.position_filter.accuracy if self.position_filter else None
        unit = unit_of(self.units.get(name, "")) if name is not None else None
        return 1.0 if unit is None else unit.times / unit.per

    @property
    def epsg(self) -> int:
        """The EPSG number of the stream's CRS; 0 for a plane without a place on Earth (`crs = "planar"`)."""
        return 0 if self.crs == PLANAR else int(self.crs.partition(":")[2])

    @property
    def filtering_columns(self) -> tuple[str, ...]:
        """The columns of records that `where` names."""
        return () if self.where is None else self.where.names

    @property
    def space(self) -> "Space":
        """What x and y mean: longitude and latitude in degrees, or planar coordinates in the CRS's unit."""
        from st_common.geometry.space import GLOBE, PLANE  # brings NumPy: see who asks

        return GLOBE if self.is_in_degrees else PLANE

    @property
    def is_in_degrees(self) -> bool:
        """Whether x and y are longitude and latitude."""
        return self.epsg != 0 and unit_of_crs(self.epsg) is None

    @property
    def unit_m(self) -> float:
        """How many metres one unit of a plane's coordinates is; 1 for degrees and where the plane is no CRS."""
        return 1.0 if self.epsg == 0 else unit_of_crs(self.epsg) or 1.0


def check_together(
    stream: StreamSettings, table: Mapping[str, Any], place: str
) -> None:
    """Refuses keys that are right alone and wrong beside each other.

    Args:
        stream: the settings.
        table: the keys that were given, some of which have no meaning for some formats.
        place: where they stand, for errors.

    Raises:
        ConfigError: two of them cannot be together.
    """
    _check_format(stream, table, place)
    _check_owner(stream, place)
    times = stream.columns.event_ts
    counts = stream.time_unit in COUNTED_PER_S
    if counts and stream.time_zone is not None:
        raise ConfigError(
            f"{place} time_zone = {stream.time_zone!r} of times in {stream.time_unit}",
            hint="times that count from 1970 are instants in all zones: remove time_zone",
        )
    by_numbers = bool(parts(stream.columns.x))
    if stream.coordinates != "degrees" and not (by_numbers and stream.is_in_degrees):
        raise ConfigError(
            f"{place} coordinates = {stream.coordinates!r} without x and y in degrees",
            hint="remove it",
        )
    if stream.place_order is not None and stream.columns.place is None:
        raise ConfigError(
            f"{place} place_order without place",
            hint="columns.place names the column that holds both coordinates",
        )
    if len(parts(times)) > 1 and counts:
        raise ConfigError(
            f"{place} time_unit = {stream.time_unit!r} of a date and a time",
            hint='a format such as "%d/%m/%Y %H:%M:%S", or iso',
        )
    _check_accuracy(stream, place)


def _check_owner(stream: StreamSettings, place: str) -> None:
    """Records without ids that are called as their files come in files."""
    if stream.columns.object_from != "file name":
        return
    for name, source in stream.sources.items():
        if source.kind != "files":
            raise ConfigError(
                f'{place} columns: object = {{ from = "file name" }}, but source {name!r} reads no files',
                hint='{ from = "source" } names it',
            )


def _check_accuracy(stream: StreamSettings, place: str) -> None:
    """The attribute that says how good a fix is must be a length: else nobody knows what its numbers are."""
    if stream.position_filter is None:
        return
    name = stream.position_filter.accuracy
    for column in stream.attributes:
        if column.lower() in FILTER_COLUMNS:
            raise ConfigError(
                f"{place} attribute {column!r} is a column of the positions of a stream with a position_filter",
                hint="give the attribute another name",
            )
    if name is None:
        return
    unit = unit_of(stream.units.get(name, ""))
    if unit is None or unit.domain != "space":
        raise ConfigError(
            f"{place} position_filter: accuracy = {name!r} is no attribute with a unit of length",
            hint=f'attributes = {{ {name} = "double m" }}',
        )


def _check_format(stream: StreamSettings, table: Mapping[str, Any], place: str) -> None:
    """Refuses what has no meaning for the stream's format."""
    form = format_of(stream.format)
    for key in FORMAT_KEYS:
        if key in table and key not in form.takes:
            raise ConfigError(
                f"{place} {key} has no meaning for {stream.format}", hint="remove it"
            )
    if form.crs not in (None, stream.crs):
        raise ConfigError(
            f"{place} crs = {stream.crs!r}, but {stream.format} is in {form.crs}",
            hint="remove it",
        )
    wrong = form.wrong_in(stream)
    if wrong is not None:
        message, hint = wrong
        raise ConfigError(f"{place} {message}", hint=hint)
