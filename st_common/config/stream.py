"""The settings of one stream as values, and what of them cannot stand beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from st_common.config.columns import Columns
from st_common.config.entry_filter import EntryFilter
from st_common.config.filters import FilterSettings
from st_common.config.home import DEFAULT_GROUP
from st_common.config.keys import Place, key
from st_common.config.position_filter import PositionFilter
from st_common.config.sources import SourceSettings
from st_common.config.spark import SparkSettings
from st_common.config.stream_values import (
    COORDINATES,
    FILTER_COLUMNS,
    PLACE_ORDERS,
    PLANAR,
    attribute_types,
    character,
    encoding_name,
    joined_streams,
    key_path,
    quoting,
    record_format,
    system,
    unit_of_time,
    zone,
)
from st_common.config.units import unit_of
from st_common.config.values import (
    flag,
    named,
    number,
    one_of,
    table,
    text,
    whole,
    words,
)
from st_common.crs import unit_of_crs
from st_common.formats.format import FORMAT_KEYS
from st_common.formats.format_settings import parts
from st_common.formats.registry import format_of
from st_common.times import COUNTED_PER_S

if TYPE_CHECKING:
    from st_common.geometry.space import Space

Engine = Literal["spark", "local"]
Codec = Literal["packet", "raw"]
AttributeType = Literal["string", "double", "long", "bool"]

_ABOVE_0 = number(above=0.0, off=True)
_LEAST_1 = number(least=1.0, off=True)
_CLOSED_DAYS = whole(least=0, most=36_500)
_MANY = 1_000_000

CLEANING = 2  # by which rules values are cleaned that come from now on; 2: lines of names are called `header`
PUBLIC_ID_KEY = "0123456789123456"  # of streams from before there were others


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """One stream as `conf/streams.toml` describes it; None means off.

    Attributes:
        name: of the stream.
        format: csv, tsv, ndjson, gpx, geojson, parquet, opensky or boxes (docs/file-formats.md), or with columns of
            their own gtfs-rt (GTFS-realtime), ais (ships), sbs1 and readsb (aircraft), hfp (buses and trams), nmea (GPS
            receivers), owntracks and traccar (phones, trackers), or one that a package brings: docs/formats.md.
        columns: which columns of the records are the parts of a fix: see below.
        crs: the system of the coordinates: EPSG:4326, another EPSG system, or "planar" (no place on Earth). Queries
            with lengths need one in degrees or metres.
        query: the query whose rows feed the stream (`fairway capture`); while `running`, a process of its own does it.
        layer: the layer whose features are the fixes; the first query FROM a layer declares such a stream, and nobody
            need write one.
        joins: the two streams whose fixes it holds, in the order of event time; a query over both makes it. Of
            "cars@12" what its log has before segment 12 counts by the last fix of each object.
        time_unit: s, ms, us or ns since 1970, excel (days, as spreadsheets count), iso, rfc2822, or a format:
            "%d/%m/%Y %H:%M:%S" (docs/file-formats.md#times).
        time_zone: where clocks stand that show times without a zone: "Europe/Berlin", or "+01:00"; without it in UTC.
        attributes: other columns to keep: string, double, long or bool; a number may have a unit, so that conditions
            can use units: speed = "double km/h", height = "long ft". A value that cannot be read is null and counted
            (`fairway status`), and the fix counts all the same.
        units: of attributes that have one, such as "km/h": numbers with a unit are compared in it.
        encoding: csv, tsv, ndjson, geojson: of the text, "windows-1252", "latin-1", "shift_jis", .. UTF-16 needs it
            only where nothing in a file says so.
        decimal: what stands in front of the decimals of numbers in texts: "," in sheets of half the world.
        coordinates: how x and y are written (degrees also with N, S, E, W, minutes and seconds): e5, e6, e7 for whole
            numbers, ten-millionths of a degree in e7, or nmea, degrees and minutes in one: 6010.2 is 60.17.
        place_order: "lat lon" or "lon lat": of two numbers in the column place, "60.17, 24.94". Letters and geometries
            need none.
        header: csv and tsv: whether a file starts with the names of its columns.
        delimiter: csv and tsv: what stands between two columns.
        quote: csv and tsv: what stands around a text; "off" where nothing is quoted.
        records: ndjson: the key, or path of keys, under which a document has its records: "vehicles" of
            {"vehicles": [{..}, {..}]}, "data.vehicles". Without it records are lines, or the elements of one array.
        skip_lines: csv, tsv, ndjson, geojson: so many lines at the beginning of each file are no records.
        nulls: words that stand for a missing value in any column: ["NA", "-"]; an empty one is always missing.
        where: which records may be fixes at all: a condition on their columns, "_type = 'location' AND valid"; others
            are rejects, filtered_out, and move nobody. Columns that are no attributes may stand there, paths in quotes.
        drop_null_island: whether a place at exactly 0, 0 is missing_position, as devices write it that do not know
            where they are; without it: true in degrees, false on a plane.
        cleaning: nothing that people set: by which rules values are cleaned (`decode.cleaning`); 0: by none, as logs
            from before there were any.
        position_filter: which fixes are stored with a reason and change nothing: see below.
        lateness_s: how long fixes are held, so that answers do not depend on their order; 0: they are used at once.
        silence_s: an object that is silent for longer has expired.
        max_ahead_s: a fix that is further ahead of its arrival is rejected; "off" for replays of old files.
        max_jump_s: a fix that leaps so far ahead of all fixes before it is rejected as ahead_of_stream, unless its
            arrival, a second object or the next three fixes of its object say the same; "off" believes every clock.
        max_speed_mps: the largest speed of an object; with silence_s it says how wide caches may be.
        moving: whether queries are judged at ticks (moving regions, KNN, pairs of objects, windows, aggregates). Where
            it is false each shard gets only its own fixes, and such queries are refused.
        tick_s: the event time between two ticks.
        cache_share: how much wider than its region the cache of a moving query is: the part of max_speed_mps times
            silence_s. With 0, or without both settings, there is no cache.
        cache_refills: whether caches are filled anew. Where it is false, as in the paper, what they miss is found and
            counted.
        window_rows: how many of an object's newest fixes a query with [RANGE ..] windows keeps at most.
        latest_every: the table `latest` takes the first reading of an object and every k-th after it.
        latest_flush_s: how often `latest` is flushed.
        snapshot_s: event time between two snapshots; questions about the past read at most so much.
        shards: among how many shards objects are dealt out; frozen when the stream first runs.
        group: the group of layers whose regions the table of positions shares.
        running: whether the supervisor keeps the stream's engine alive.
        engine: on which engine the stream runs; answers are the same on both. Without it a stream that has begun stays
            on the engine that it was begun on, and one with a table `spark` runs on spark.
        codec: raw: each reader decodes; packet: large segments are decoded once, when a replay captures them.
        raw_days: how many days the raw bytes of packets stay, for a reset that decodes them anew; off: for ever.
        log_days: how many days the log keeps records that every reader is behind; off: for ever, see
            docs/operations.md.
        positions_days: how many closed days of fixes are kept; without it as many as the data contract says; 0: none
            but those of the open day.
        changes_days: the same of changes.
        spark: where the engine spark runs: see below.
        sources: where live records come from: see below.
        id_key: nothing that people set: engines take it from the stream's topology. It keys the hashes by which objects
            are found and dealt out to shards; the default is that of streams from before there were others.
        filters: nothing that people set here: the filters of users, by name, as conf/filters.toml has them.
    """

    name: str
    format: str = field(metadata=key(record_format))
    columns: Columns = field(metadata=key(table))
    crs: str = field(default="EPSG:4326", metadata=key(system))
    query: str | None = field(default=None, metadata=key(text))
    layer: str | None = field(default=None, metadata=key(text))
    joins: tuple[str, ...] = field(default=(), metadata=key(joined_streams))
    time_unit: str = field(default="iso", metadata=key(unit_of_time))
    time_zone: str | None = field(default=None, metadata=key(zone))
    attributes: Mapping[str, AttributeType] = field(
        default_factory=dict, hash=False, metadata=key(attribute_types)
    )
    units: Mapping[str, str] = field(default_factory=dict, hash=False)
    encoding: str = field(default="utf-8", metadata=key(encoding_name))
    decimal: str = field(default=".", metadata=key(one_of(".", ",")))
    coordinates: str = field(default="degrees", metadata=key(one_of(*COORDINATES)))
    place_order: str | None = field(default=None, metadata=key(one_of(*PLACE_ORDERS)))
    header: bool = field(default=True, metadata=key(flag))
    delimiter: str = field(default=",", metadata=key(character))
    quote: str = field(default='"', metadata=key(quoting))
    records: str | None = field(default=None, metadata=key(key_path))
    skip_lines: int = field(default=0, metadata=key(whole(least=0, most=10_000)))
    nulls: tuple[str, ...] = field(default=(), metadata=key(words))
    where: EntryFilter | None = field(default=None, metadata=key(text))
    drop_null_island: bool | None = field(default=None, metadata=key(flag))
    cleaning: int = 0
    position_filter: PositionFilter | None = field(default=None, metadata=key(table))
    lateness_s: float = field(default=0.0, metadata=key(number(least=0.0)))
    silence_s: float | None = field(default=None, metadata=key(_ABOVE_0))
    max_ahead_s: float | None = field(
        default=60.0, metadata=key(number(least=0.0, off=True))
    )
    max_jump_s: float | None = field(default=86_400.0, metadata=key(_ABOVE_0))
    max_speed_mps: float | None = field(default=None, metadata=key(_ABOVE_0))
    moving: bool = field(default=True, metadata=key(flag))
    tick_s: float = field(default=1.0, metadata=key(number(least=0.000_001)))
    cache_share: float = field(default=1.0, metadata=key(number(least=0.0)))
    cache_refills: bool = field(default=True, metadata=key(flag))
    window_rows: int = field(default=10_000, metadata=key(whole(least=2, most=_MANY)))
    latest_every: int = field(default=1, metadata=key(whole(most=_MANY)))
    latest_flush_s: float = field(default=60.0, metadata=key(number(least=1.0)))
    snapshot_s: float | None = field(default=3600.0, metadata=key(_LEAST_1))
    shards: int = field(default=2, metadata=key(whole(most=256)))
    group: str = field(default=DEFAULT_GROUP, metadata=key(named("group")))
    running: bool = field(default=False, metadata=key(flag))
    engine: Engine = field(default="local", metadata=key(one_of("spark", "local")))
    codec: Codec = field(default="raw", metadata=key(one_of("packet", "raw")))
    raw_days: float | None = field(
        default=30.0, metadata=key(number(least=0.0, off=True))
    )
    log_days: float | None = field(default=None, metadata=key(_LEAST_1))
    positions_days: int | None = field(default=None, metadata=key(_CLOSED_DAYS))
    changes_days: int | None = field(default=None, metadata=key(_CLOSED_DAYS))
    spark: SparkSettings = field(default_factory=SparkSettings, metadata=key(table))
    sources: Mapping[str, SourceSettings] = field(
        default_factory=dict, hash=False, metadata=key(table)
    )
    id_key: str = field(default=PUBLIC_ID_KEY, repr=False)
    filters: Mapping[str, FilterSettings] = field(default_factory=dict, hash=False)

    @property
    def accuracy_unit_m(self) -> float:
        """How many metres one unit of the filter's attribute of accuracy is; 1 without one."""
        name = self.position_filter.accuracy if self.position_filter else None
        unit = unit_of(self.units.get(name, "")) if name is not None else None
        return 1.0 if unit is None else unit.times / unit.per

    @property
    def joined(self) -> Mapping[str, int]:
        """The streams that it joins, each with the segment from which on all its fixes count."""
        pairs = (one.partition("@") for one in self.joins)
        return {name: int(segment or 0) for name, _, segment in pairs}

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
    stream: StreamSettings, given: Mapping[str, Any], place: Place
) -> None:
    """Refuses keys that are right alone and wrong beside each other.

    Args:
        stream: the settings.
        given: the keys that were given, some of which have no meaning for some formats.
        place: where they stand, for errors.

    Raises:
        ConfigError: two of them cannot be together.
    """
    _check_format(stream, given, place)
    _check_owner(stream, place)
    _check_joint(stream, place)
    times = stream.columns.event_ts
    counts = stream.time_unit in COUNTED_PER_S
    if counts and stream.time_zone is not None:
        raise place.wrong(
            f"time_zone = {stream.time_zone!r} of times in {stream.time_unit}",
            hint="times that count from 1970 are instants in all zones: remove time_zone",
        )
    by_numbers = bool(parts(stream.columns.x))
    if stream.coordinates != "degrees" and not (by_numbers and stream.is_in_degrees):
        raise place.wrong(
            f"coordinates = {stream.coordinates!r} without x and y in degrees",
            hint="remove it",
        )
    if stream.place_order is not None and stream.columns.place is None:
        raise place.wrong(
            "place_order without place",
            hint="columns.place names the column that holds both coordinates",
        )
    if len(parts(times)) > 1 and counts:
        raise place.wrong(
            f"time_unit = {stream.time_unit!r} of a date and a time",
            hint='a format such as "%d/%m/%Y %H:%M:%S", or iso',
        )
    _check_accuracy(stream, place)


def _check_joint(stream: StreamSettings, place: Place) -> None:
    """A joint stream has its fixes of the two that it joins, and is asked for its time by the local engine alone."""
    if not stream.joins:
        return
    if stream.query is not None or stream.sources:
        other = "query" if stream.query is not None else "sources"
        raise place.wrong(
            f"joins beside {other}",
            hint="it has the fixes of two streams, and no others",
        )
    if stream.engine != "local":
        raise place.wrong(
            f"joins with engine = {stream.engine!r}",
            hint="a joint stream runs on the local engine; the two that it joins run on any",
        )


def _check_owner(stream: StreamSettings, place: Place) -> None:
    """Records without ids that are called as their files come in files."""
    if stream.columns.object_from != "file name":
        return
    for name, source in stream.sources.items():
        if source.kind != "files":
            raise place.wrong(
                f'columns: object = {{ from = "file name" }}, but source {name!r} reads no files',
                hint='{ from = "source" } names it',
            )


def _check_accuracy(stream: StreamSettings, place: Place) -> None:
    """The attribute that says how good a fix is must be a length: else nobody knows what its numbers are."""
    if stream.position_filter is None:
        return
    name = stream.position_filter.accuracy
    for column in stream.attributes:
        if column.lower() in FILTER_COLUMNS:
            raise place.wrong(
                f"attribute {column!r} is a column of the positions of a stream with a position_filter",
                hint="give the attribute another name",
            )
    if name is None:
        return
    unit = unit_of(stream.units.get(name, ""))
    if unit is None or unit.domain != "space":
        raise place.wrong(
            f"position_filter: accuracy = {name!r} is no attribute with a unit of length",
            hint=f'attributes = {{ {name} = "double m" }}',
        )


def _check_format(
    stream: StreamSettings, given: Mapping[str, Any], place: Place
) -> None:
    """Refuses what has no meaning for the stream's format."""
    form = format_of(stream.format)
    for name in FORMAT_KEYS:
        if name in given and name not in form.takes:
            raise place.wrong(
                f"{name} has no meaning for {stream.format}", hint="remove it"
            )
    if form.crs not in (None, stream.crs):
        raise place.wrong(
            f"crs = {stream.crs!r}, but {stream.format} is in {form.crs}",
            hint="remove it",
        )
    wrong = form.wrong_in(stream)
    if wrong is not None:
        message, hint = wrong
        raise place.wrong(message, hint=hint)
