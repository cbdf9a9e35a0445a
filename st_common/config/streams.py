"""The streams of `conf/streams.toml`: each table becomes a stream, or an error that concerns it alone."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from st_common.config.columns import Columns, columns_of_table
from st_common.config.entry_filter import EntryFilter
from st_common.config.filters import Filters, load_filters
from st_common.config.home import require_own_view, view_name
from st_common.config.keys import (
    Place,
    keys_of,
    read_toml,
    table_named,
    tables_of,
    values_of,
)
from st_common.config.position_filter import PositionFilter, position_filter_of
from st_common.config.sources import source_settings
from st_common.config.spark import SparkSettings, spark_settings
from st_common.config.stream import (
    CLEANING,
    AttributeType,
    StreamSettings,
    check_together,
)
from st_common.errors import ConfigError
from st_common.formats.format import Format
from st_common.formats.registry import format_of

Begun = Callable[[str], Mapping[str, Any]]
"""Gives the keys that a stream was begun with, by its name."""


def _never(name: str) -> Mapping[str, Any]:
    """What a stream was begun with that never was."""
    del name
    return {}


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


def load_streams(conf: Path, *, begun: Begun = _never) -> Streams:
    """The streams of a settings file.

    A table that is wrong (a key is unknown, missing, of the wrong type or out of its range) is `broken`, with an error
    that names file, stream and key; it concerns no other stream.

    Args:
        conf: the folder with streams.toml, or a file whose name ends in .toml.
        begun: gives, by the name of a stream, the keys that it was begun with; they count where its table is silent.

    Raises:
        ConfigError: the file is absent or no TOML, or has something else than streams; or so of filters.toml.
    """
    path = _streams_file(conf)
    try:
        document, place = read_toml(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{path} does not exist",
            hint="name the folder by --conf or FAIRWAY_CONF; `fairway init` begins one in the home",
        ) from None
    filters = load_filters(path)
    settings_of: dict[str, StreamSettings] = {}
    broken: dict[str, ConfigError] = {}
    by_view: dict[str, str] = {}
    for name, table in tables_of(document, "streams", place).items():
        try:
            require_own_view(name, by_view.setdefault(view_name(name), name))
            stream = stream_of_table(name, with_begun(name, table, begun), place)
            settings_of[name] = replace(stream, filters=filters)
        except ConfigError as error:
            broken[name] = error
    return Streams(settings_of, broken)


def filters_of(streams: Mapping[str, StreamSettings]) -> Filters:
    """The filters of users that an installation has: all its streams have the same."""
    return next((stream.filters for stream in streams.values()), {})


def with_begun(name: str, table: Any, begun: Begun) -> Any:
    """A stream's table, with what it was begun with where that is silent; what is no table stays as it is."""
    return {**begun(name), **table} if isinstance(table, dict) else table


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


def chosen(
    streams: Mapping[str, StreamSettings], *names: str | None
) -> dict[str, StreamSettings]:
    """The streams of some names, by name; with none, all of them. A ConfigError as of `stream_of`."""
    given = [name for name in names if name]
    return {name: stream_of(streams, name) for name in given} or {**streams}


def broken_of(streams: Collection[str]) -> Mapping[str, ConfigError]:
    """The streams beside these whose tables are wrong, each with its error."""
    return streams.broken if isinstance(streams, Streams) else {}


def stream_of_table(name: str, table: object, file: Place | Path) -> StreamSettings:
    """The stream that a table of settings describes.

    Args:
        name: of the stream.
        table: its keys and values.
        file: what it stands in, for errors.

    Raises:
        ConfigError: a key is unknown, missing, of the wrong type or out of its range.
    """
    file = file if isinstance(file, Place) else Place(file=file)
    given, place = table_named(name, table, file, head="streams", what="stream")
    values = values_of(
        keys_of(StreamSettings), given, place, elsewhere=_keys_below(name)
    )
    form = format_of(values["format"])
    values |= _tables_below(values, form, place)
    values |= _attributes_of(values.get("attributes", {}), values["columns"])
    if "where" in values:
        values["where"] = _entry_filter(values, place)
    stream = _with_entry(StreamSettings(name=name, **{**form.defaults, **values}))
    check_together(stream, given, place)
    return stream


def _tables_below(
    values: Mapping[str, Any], form: Format, place: Place
) -> dict[str, Any]:
    """What the tables of a stream say that are keys of its own; who says where Spark runs means it."""
    of_filter = values.get("position_filter")
    return {
        "engine": values.get("engine", "spark" if "spark" in values else "local"),
        "columns": columns_of_table(
            values["columns"],
            attributes=values.get("attributes", {}),
            of_format=form.columns,
            place=place.below("columns", called="columns:"),
        ),
        "position_filter": None
        if of_filter is None
        else position_filter_of(
            of_filter, place.below("position_filter", called="position_filter:")
        ),
        "spark": spark_settings(
            values.get("spark", {}), place.below("spark", called="spark:")
        ),
        "sources": source_settings(
            values.get("sources", {}), place, above=keys_of(StreamSettings)
        ),
    }


def _keys_below(name: str) -> dict[str, tuple[str, str]]:
    """The keys of tables of a stream that are taken for its own, and where they belong."""
    own = keys_of(StreamSettings).keys()
    return {
        key: (f"{key!r} is no key of the stream", f"put it into [streams.{name}.{of}]")
        for of, kind in (("position_filter", PositionFilter), ("spark", SparkSettings))
        for key in keys_of(kind).keys() - own
    }


def _entry_filter(values: Mapping[str, Any], place: Place) -> EntryFilter:
    """The filter that a key `where` says; a parser is imported for who has one."""
    from st_common.query.entry_condition import entry_filter_of

    columns: Columns = values["columns"]
    kinds = [
        (columns.of_attribute(name), kind)
        for name, kind in values["attributes"].items()
    ]
    return entry_filter_of(values["where"], kinds, place)


def _with_entry(stream: StreamSettings) -> StreamSettings:
    """A stream with what its settings need not say of its records, and older logs do not."""
    drops = stream.drop_null_island
    drops = stream.is_in_degrees if drops is None else drops
    return replace(stream, drop_null_island=drops, cleaning=CLEANING)


def _attributes_of(
    declared: Mapping[str, tuple[AttributeType, str]], columns: Columns
) -> dict[str, Mapping[str, str]]:
    """The types and the units of attributes, with those that follow from columns."""
    kinds = {name: kind for name, (kind, _) in declared.items()}
    units = {name: unit for name, (_, unit) in declared.items() if unit}
    return {"attributes": {**kinds, **columns.own_attributes}, "units": units}
