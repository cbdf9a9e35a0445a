"""Streams that CREATE STREAM made: a table of settings for each, as `conf/streams.toml` has them (SPEC W6).

They stand in one file of the registry, which is changed together with the control row of the query that feeds each.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from st_common.config.home import JOINS_FILE, Home, require_own_view, view_name
from st_common.config.streams import (
    Streams,
    filters_of,
    load_streams,
    stream_of_table,
    with_begun,
)
from st_common.errors import ConfigError, LogError
from st_common.query.commit import completed, registry_file
from st_common.record import opened, sealed
from st_common.storage import LocalStorage

FILE = "streams.jsonl"


def created_streams(home: Home) -> dict[str, Mapping[str, Any]]:
    """The tables of the created streams of a home, by name.

    Raises:
        LogError: the file has a line that is no stream.
    """
    completed(home)
    try:
        lines = registry_file(home, FILE).read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    return dict(_decoded(line, number) for number, line in enumerate(lines, 1))


def encoded(tables: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The file with these tables, by name."""
    return b"".join(
        sealed({"name": name, "table": tables[name]}) + b"\n" for name in sorted(tables)
    )


def known_streams(home: Home, conf: Path) -> Streams:
    """The streams of the settings, then those that were created; see `load_streams`.

    A name that both have is `broken`, for nobody knows which of them is meant. Where nothing says on which engine a
    stream runs that has begun, it is the one that it was begun on.
    """
    begun = partial(begun_on, home)
    streams = load_streams(conf, begun=begun)
    for name, table in created_streams(home).items():
        add_created(streams, name, with_begun(name, table, begun))
    return streams


def note_joined(home: Home, name: str, table: Mapping[str, Any]) -> None:
    """Notes of a joint stream that it has read nothing yet, so that what it will read is not purged."""
    places: dict[str, Any] = {
        one.partition("@")[0]: {} for one in table.get("joins", ())
    }
    if places:
        folder = LocalStorage(home.stream(name))
        folder.put(JOINS_FILE, sealed({"streams": places}))


def forget_joined(home: Home, name: str) -> None:
    """Has nothing be kept for a joint stream that was dropped."""
    (home.stream(name) / JOINS_FILE).unlink(missing_ok=True)


def begun_on(home: Home, name: str) -> Mapping[str, Any]:
    """The engine that a stream was begun on, as its table would say it; nothing of one that never ran."""
    engine = home.begun_engine(name)
    return {} if engine is None else {"engine": engine}


def add_created(streams: Streams, name: str, table: Mapping[str, Any]) -> None:
    """Puts a created stream among others; where it cannot be, among the broken ones."""
    try:
        for other in [*streams, *streams.broken]:
            _require_other(name, other)
        stream = stream_of_table(name, table, Path(FILE))
        streams[name] = replace(stream, filters=filters_of(streams))
    except ConfigError as error:
        streams.pop(name, None)
        streams.broken[name] = error


def _require_other(name: str, other: str) -> None:
    """Raises a ConfigError where a stream of the settings is called as a created one, or would be in SQL."""
    if name == other:
        raise ConfigError(
            f"stream {name!r} stands in the settings, and CREATE STREAM made one",
            hint=f"take it out of the settings, or DROP STREAM {name}",
        )
    if view_name(name) == view_name(other):
        require_own_view(name, other)


def _decoded(line: bytes, number: int) -> tuple[str, Mapping[str, Any]]:
    try:
        value = opened(line)
        return value["name"], value["table"]
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{FILE} of the registry: line {number} is no stream") from error
