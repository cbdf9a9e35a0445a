"""Where changes are delivered to, as `conf/deliveries.toml` says."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from st_common.delivery.feeders import feeders_of
from st_common.delivery.registry import BY_KIND, SINKS
from st_common.delivery.sink import Sink
from st_common.errors import ConfigError
from st_common.home import checked_name
from st_common.ops.settings import operations_table
from st_common.query.passing import is_passing
from st_common.settings import StreamSettings, broken_of
from st_common.toml_values import (
    Check,
    checked,
    flag,
    known,
    number,
    one_of,
    read_toml,
    text,
    whole,
    words,
)

Start = Literal["first", "now"]
_STARTS = ("first", "now")
_MOST_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """One delivery: changes of the queries of one stream that match one of the globs `queries`, to one receiver.

    Without `queries` it takes all but those that programs register for themselves (see `query.passing`).
    Without `dead_letter` a refused change stops the delivery. `retry_max_s` is the longest pause between two tries.
    `start` says where a new delivery begins: at the first change that the table has, or with those that come from now
    on. With `after_quality` only changes of closed days go that kept their contract. `sink` has all that is known of
    the receiver.
    """

    name: str
    stream: str
    sink: Sink
    queries: tuple[str, ...] = ()
    batch_rows: int = 500
    retry_max_s: float = 60.0
    dead_letter: bool = True
    start: Start = "first"
    after_quality: bool = False
    running: bool = False

    def takes(self, query: str) -> bool:
        """Whether changes of a query go to the receiver."""
        if not self.queries:
            return not is_passing(query)
        return any(fnmatchcase(query, glob) for glob in self.queries)

    @property
    def to(self) -> str:
        """The kind of its receiver, as settings call it."""
        return self.sink.kind


def load_deliveries(
    conf: Path, streams: Collection[str]
) -> dict[str, DeliverySettings]:
    """The deliveries of `conf`/deliveries.toml, by name, in the order of the file; none when there is no such file.

    Raises:
        ConfigError: the file is no TOML, or a key is unknown, missing, of the wrong type, out of its range or does not
            go together with another; the message names file, delivery and key.
    """
    path = conf / "deliveries.toml"
    try:
        document = read_toml(path)
    except FileNotFoundError:
        return {}
    known(document, ("deliveries",), f"{path}:")
    deliveries = document.get("deliveries", {})
    if not isinstance(deliveries, dict):
        raise ConfigError(
            f"{path}: deliveries must be tables", hint="[deliveries.NAME]"
        )
    names = [
        *streams,
        *broken_of(streams),
    ]  # a delivery reads the table of a stream and not its settings
    return {
        name: _delivery(name, table, path, names) for name, table in deliveries.items()
    }


def wanted(conf: Path, streams: Mapping[str, StreamSettings]) -> dict[str, bool]:
    """Whether each delivery of `conf`/deliveries.toml shall run, by name, and each that feeds a stream (`feeders`).

    Raises:
        ConfigError: the file is wrong, or a delivery in it is called as one that feeds a stream.
    """
    deliveries, feeders = load_deliveries(conf, streams), feeders_of(streams)
    for name in feeders.keys() & deliveries.keys():
        raise ConfigError(
            f"{conf / 'deliveries.toml'}: delivery {name!r} is called as the one that feeds a stream",
            hint="give it another name",
        )
    running = {name: delivery.running for name, delivery in deliveries.items()}
    return running | {name: stream.running for name, stream in feeders.items()}


def delivery_of(conf: Path, streams: Collection[str], name: str) -> DeliverySettings:
    """One delivery of `conf`/deliveries.toml.

    Raises:
        ConfigError: there is none of that name, or the file is wrong.
    """
    deliveries = load_deliveries(conf, streams)
    if name not in deliveries:
        near = difflib.get_close_matches(name, deliveries, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"{conf / 'deliveries.toml'} has {', '.join(deliveries) or 'none'}"
        )
        raise ConfigError(f"there is no delivery {name!r}", hint=hint)
    return deliveries[name]


def _delivery(
    name: str, table: object, path: Path, names: Collection[str]
) -> DeliverySettings:
    place = f"{path}: delivery {name!r}:"
    try:
        checked_name(name, "delivery")
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", hint=error.hint) from None
    if not isinstance(table, dict):
        raise ConfigError(f"{place} must be a table", hint=f"[deliveries.{name}]")
    known(table, (*DELIVERY_KEYS, *_SINK_KEYS), place)
    own = {key: value for key, value in table.items() if key in _SINK_KEYS}
    rest = {key: value for key, value in table.items() if key not in _SINK_KEYS}
    keys = {**DELIVERY_KEYS, "stream": one_of(*names)}
    values = checked(rest, keys, DeliverySettings, place)
    if "to" not in values:
        raise ConfigError(f"{place} to is missing", hint=f"one of {', '.join(BY_KIND)}")
    sink = sink_of(BY_KIND[values.pop("to")], own, place)
    return DeliverySettings(name=name, sink=sink, **values)


T = TypeVar("T", bound=Sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideSink:
    """A table of settings that has keys of its own beside those of a sink.

    Attributes:
        own: its own keys that are there.
        of_sink: the sink's that are there.
        place: where the table stands, for errors.
    """

    own: Mapping[str, Any]
    of_sink: Mapping[str, Any]
    place: str


def beside_sink(
    conf: Path, name: str, own: Collection[str], kind: type[T]
) -> BesideSink | None:
    """A table of `conf`/operations.toml that describes a sink, and more; None where there is no such table.

    Args:
        conf: the folder of the settings.
        name: of the table.
        own: the keys that are not the sink's.
        kind: of the sink.

    Raises:
        ConfigError: the file is no TOML, or a key is neither the table's nor the sink's.
    """
    table = operations_table(conf, name)
    if table is None:
        return None
    place = f"{conf / 'operations.toml'}: {name}:"
    known(table, (*own, *kind.keys), place)
    return BesideSink(
        own={key: value for key, value in table.items() if key in own},
        of_sink={key: value for key, value in table.items() if key not in own},
        place=place,
    )


def sink_of(kind: type[T], table: Mapping[str, Any], place: str) -> T:
    """The sink of a kind that a table describes.

    Args:
        kind: the kind.
        table: the keys that belong to sinks, and no others.
        place: where the table stands, for errors.

    Raises:
        ConfigError: a key means nothing for this kind, or is missing, wrong or does not go together with another.
    """
    for key in table:
        if key not in kind.keys:
            raise ConfigError(
                f"{place} {key} has no meaning for a {kind.kind}", hint="remove it"
            )
    sink = kind(**checked(table, kind.keys, kind, place))
    try:
        sink.check()
    except ConfigError as error:
        raise ConfigError(f"{place} {error.message}", hint=error.hint) from None
    return sink


DELIVERY_KEYS: dict[str, Check] = {
    "stream": text,
    "to": one_of(*BY_KIND),
    "queries": words,
    "batch_rows": whole(most=_MOST_ROWS),
    "retry_max_s": number(least=0.0, above=True),
    "dead_letter": flag,
    "start": one_of(*_STARTS),
    "after_quality": flag,
    "running": flag,
}
"""What each key of a delivery may be, besides those of its sink."""

_SINK_KEYS = tuple(dict.fromkeys(key for sink in SINKS for key in sink.keys))
