"""What people set: streams in `conf/streams.toml`, and where home, conf and contracts lie.

This is the only module that reads environment variables.
"""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from st_common.crs import unit_of_crs
from st_common.errors import ConfigError
from st_common.feed_keys import SourceSettings, source_settings
from st_common.formats.format import FORMAT_KEYS
from st_common.formats.format_settings import parts
from st_common.formats.registry import format_of
from st_common.home import DEFAULT_GROUP, checked_name, require_own_view, view_name
from st_common.installed import own_jars, shipped
from st_common.position_filter import PositionFilter, position_filter_of
from st_common.redaction import keep_secret
from st_common.spark_keys import SparkSettings, spark_settings
from st_common.stream_columns import Columns as Columns  # noqa: PLC0414 - others take it from here
from st_common.stream_columns import columns_of_table
from st_common.stream_keys import (
    FILTER_COLUMNS,
    PLANAR,
    STREAM_KEYS,
    keys_below,
)
from st_common.toml_values import checked, known, read_toml
from st_common.units import unit_of

if TYPE_CHECKING:
    from st_common.geometry.space import Space

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # as in s3://bucket/home

Engine = Literal["spark", "local"]
Codec = Literal["packet", "raw"]
AttributeType = Literal["string", "double", "long", "bool"]

DEFAULT_CONF = Path("conf")  # where nobody names a folder and the home has none
COMPLETION_VARIABLE = (
    "_FAIRWAY_COMPLETE"  # set by a shell that asks what could come next
)
PARENT_VARIABLE = "FAIRWAY_LINEAGE_PARENT"
PUBLIC_ID_KEY = "0123456789123456"  # of streams from before there were others


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """One stream as `conf/streams.toml` describes it. Seconds, metres per second; None means off.

    What is plain by its name is left out here.

    Attributes:
        query: whose rows feed it, where `capture` is not told; None: nobody knows.
        crs: "EPSG:4326" (degrees), another EPSG number, or "planar", a plane without a place on Earth.
        time_unit: `s`, `ms`, `us`, `iso`, or a format such as "%d/%m/%Y %H:%M:%S".
        attributes: further columns by name, with their types.
        units: of attributes that have one, such as "km/h": numbers with a unit are compared in it.
        quote: of CSV; "" for none.
        skip_lines: how many lines at the beginning of a file are no records; they never reach the log.
        records: the key under which a JSON document has its records; None: they stand by themselves.
        nulls: texts that stand for a missing value in any field, beside the empty one.
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
    attributes: Mapping[str, AttributeType] = field(default_factory=dict, hash=False)
    units: Mapping[str, str] = field(default_factory=dict, hash=False)
    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    skip_lines: int = 0
    records: str | None = None
    nulls: tuple[str, ...] = ()
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
    engine: Engine = "spark"
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
    def space(self) -> "Space":
        """What x and y mean: longitude and latitude in degrees, or planar coordinates in the CRS's unit."""
        from st_common.geometry.space import GLOBE, PLANE  # brings NumPy: see who asks

        is_globe = self.epsg != 0 and unit_of_crs(self.epsg) is None
        return GLOBE if is_globe else PLANE

    @property
    def unit_m(self) -> float:
        """How many metres one unit of a plane's coordinates is; 1 for degrees and where the plane is no CRS."""
        return 1.0 if self.epsg == 0 else unit_of_crs(self.epsg) or 1.0


def home_dir(given: Path | str | None = None) -> Path:
    """The home folder: `given`, else FAIRWAY_HOME.

    Raises:
        ConfigError: neither is set; there is no default, so that nobody writes tables where they happen to stand. Or it
            is the address of something else than a folder.
    """
    value = given or os.environ.get("FAIRWAY_HOME")
    if not value:
        raise ConfigError(
            "no home folder is given", hint="use --home DIR or set FAIRWAY_HOME"
        )
    if _SCHEME.match(str(value)):
        raise ConfigError(
            f"a home cannot lie at {value}",
            hint="give a folder of a local disk; shared storage is planned",
        )
    return Path(value)


def conf_dir(home: Path | None = None, given: Path | str | None = None) -> Path:
    """The folder of the settings: `given`, else FAIRWAY_CONF, else `home`/conf when it exists, else ./conf."""
    value = given or os.environ.get("FAIRWAY_CONF")
    if value:
        return Path(value)
    if home is not None and (home / "conf").is_dir():
        return home / "conf"
    return DEFAULT_CONF


def contracts_dir(given: Path | str | None = None) -> Path:
    """The folder of the data contracts: `given`, else FAIRWAY_CONTRACTS, else those that came with the package."""
    value = given or os.environ.get("FAIRWAY_CONTRACTS")
    return Path(value) if value else shipped("data_contracts")


def jars_dir() -> Path:
    """The folder of the jars that Spark is given: FAIRWAY_JARS, else the installation's own."""
    value = os.environ.get("FAIRWAY_JARS")
    return Path(value) if value else own_jars()


def is_completing() -> bool:
    """Whether a shell started this process to learn how a command line could go on."""
    return COMPLETION_VARIABLE in os.environ


def lineage_parent() -> str:
    """What the task of Airflow that started this process says of itself; "" when none did."""
    return os.environ.get(PARENT_VARIABLE, "")


def secret_of(variable: str) -> str | None:
    """The secret in an environment variable that settings name; None when it is not set, or empty.

    From now on this process writes it nowhere: see `redaction`.
    """
    value = os.environ.get(variable, "").strip() or None
    if value is not None:
        keep_secret(value)
    return value


class Streams(dict[str, StreamSettings]):
    """The streams that can run, by name, in the order of the file; `broken` are the others, each with its error."""

    def __init__(
        self,
        streams: Mapping[str, StreamSettings],
        broken: Mapping[str, ConfigError] | None = None,
    ) -> None:
        super().__init__(streams)
        self.broken = dict(broken or {})


def has_streams(conf: Path) -> bool:
    """Whether there is a settings file of streams; maintenance of what is stored needs none."""
    return _streams_file(conf).is_file()


def _streams_file(conf: Path) -> Path:
    return conf if conf.suffix == ".toml" else conf / "streams.toml"


def load_streams(conf: Path) -> Streams:
    """The streams of a settings file.

    A table that is wrong (a key is unknown, missing, of the wrong type or out of its range) is `broken`, with an error
    that names file, stream and key; it concerns no other stream.

    Args:
        conf: the folder with streams.toml, or a file whose name ends in .toml.

    Raises:
        ConfigError: the file is absent or no TOML, or has something else than streams.
    """
    path = _streams_file(conf)
    try:
        document = read_toml(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{path} does not exist",
            hint="name the folder by --conf or FAIRWAY_CONF; `fairway init` begins one in the home",
        ) from None
    known(document, ("streams",), f"{path}:")
    streams = document.get("streams", {})
    if not isinstance(streams, dict):
        raise ConfigError(f"{path}: streams must be tables", hint="[streams.NAME]")
    settings_of: dict[str, StreamSettings] = {}
    broken: dict[str, ConfigError] = {}
    by_view: dict[str, str] = {}
    for name, table in streams.items():
        try:
            require_own_view(name, by_view.setdefault(view_name(name), name))
            settings_of[name] = stream_of_table(name, table, path)
        except ConfigError as error:
            broken[name] = error
    return Streams(settings_of, broken)


def stream_of(streams: Mapping[str, StreamSettings], name: str) -> StreamSettings:
    """The settings of one stream.

    Raises:
        ConfigError: there is none of that name, or its table is wrong.
    """
    if name not in streams:
        raise broken_of(streams).get(name) or ConfigError(
            f"there is no stream {name!r}",
            hint=f"the settings have {', '.join(streams) or 'none'}",
        )
    return streams[name]


def broken_of(streams: Collection[str]) -> Mapping[str, ConfigError]:
    """The streams beside these whose tables are wrong, each with its error."""
    return streams.broken if isinstance(streams, Streams) else {}


def stream_of_table(name: str, table: object, path: Path) -> StreamSettings:
    """The stream that a table of settings describes.

    Args:
        name: of the stream.
        table: its keys and values.
        path: the file that it stands in, for errors.

    Raises:
        ConfigError: a key is unknown, missing, of the wrong type or out of its range.
    """
    place = f"{path}: stream {name!r}:"
    try:
        checked_name(name, "stream")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", hint=error.hint) from None
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table", hint=f"[streams.{name}]")
    known(table, tuple(STREAM_KEYS), place, below=keys_below(name))
    values = checked(table, STREAM_KEYS, StreamSettings, place)
    form = format_of(values["format"])
    values["columns"] = columns_of_table(
        values["columns"],
        attributes=values.get("attributes", {}),
        of_format=form.columns,
        place=f"{place} columns:",
    )
    if "position_filter" in values:
        values["position_filter"] = position_filter_of(values["position_filter"], place)
    values["spark"] = spark_settings(values.get("spark", {}), place)
    values["sources"] = source_settings(
        values.get("sources", {}), place, above=STREAM_KEYS
    )
    values |= _attributes_of(values.get("attributes", {}), values["columns"])
    stream = StreamSettings(name=name, **{**form.defaults, **values})
    _check_together(stream, table, place)
    return stream


def _attributes_of(
    declared: Mapping[str, tuple[AttributeType, str]], columns: Columns
) -> dict[str, Mapping[str, str]]:
    """The types and the units of attributes, with those that follow from columns."""
    kinds = {name: kind for name, (kind, _) in declared.items()}
    units = {name: unit for name, (_, unit) in declared.items() if unit}
    return {"attributes": {**kinds, **columns.own_attributes}, "units": units}


def _check_together(
    stream: StreamSettings, table: Mapping[str, Any], place: str
) -> None:
    """Refuses keys that are right alone and wrong beside each other."""
    _check_format(stream, table, place)
    times = stream.columns.event_ts
    if len(parts(times)) > 1 and stream.time_unit in ("s", "ms", "us"):
        raise ConfigError(
            f"{place} time_unit = {stream.time_unit!r} of a date and a time",
            hint='a format such as "%d/%m/%Y %H:%M:%S", or iso',
        )
    _check_accuracy(stream, place)


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
