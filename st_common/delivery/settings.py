"""Where changes are delivered to, as `conf/deliveries.toml` says."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeVar

from st_common.config.keys import (
    Key,
    Place,
    key,
    keys_of,
    known,
    of_table,
    read_toml,
    table_named,
    tables_of,
    values_of,
)
from st_common.config.stream import StreamSettings
from st_common.config.streams import broken_of
from st_common.config.values import flag, number, one_of, text, whole, words
from st_common.delivery.feeders import feeders_of
from st_common.delivery.registry import BY_KIND, SINKS
from st_common.delivery.sink import Sink
from st_common.errors import ConfigError
from st_common.query.passing import is_passing

Start = Literal["first", "now"]
_MOST_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """One delivery: changes of queries of one stream, to one receiver.

    Attributes:
        name: of the delivery.
        stream: whose changes.
        sink: all that is known of the receiver.
        queries: which queries, by globs: ["alarm-*", "centre"]. Without it all, also those to come, but not those that
            programs register for themselves.
        batch_rows: changes in one request at most.
        retry_max_s: the longest pause between two tries.
        dead_letter: whether a change that is refused for good is kept in the table dead_letters, and later ones go on;
            otherwise it stops the delivery.
        start: where a new delivery begins: with the first change that there is, or now.
        after_quality: whether only changes of days go that are closed and keep their contract.
        running: whether the supervisor keeps this delivery alive.
    """

    name: str
    stream: str = field(metadata=key(text))
    sink: Sink
    queries: tuple[str, ...] = field(default=(), metadata=key(words))
    batch_rows: int = field(default=500, metadata=key(whole(most=_MOST_ROWS)))
    retry_max_s: float = field(default=60.0, metadata=key(number(above=0.0)))
    dead_letter: bool = field(default=True, metadata=key(flag))
    start: Start = field(default="first", metadata=key(one_of("first", "now")))
    after_quality: bool = field(default=False, metadata=key(flag))
    running: bool = field(default=False, metadata=key(flag))

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
    try:
        document, place = read_toml(conf / "deliveries.toml")
    except FileNotFoundError:
        return {}
    # A delivery reads the table of a stream and not its settings.
    names = [*streams, *broken_of(streams)]
    return {
        name: _delivery(name, table, place, names)
        for name, table in tables_of(document, "deliveries", place).items()
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
    name: str, table: object, file: Place, streams: Collection[str]
) -> DeliverySettings:
    given, place = table_named(name, table, file, head="deliveries", what="delivery")
    known(given, (*DELIVERY_KEYS, *_SINK_KEYS), place)
    own = {each: value for each, value in given.items() if each in DELIVERY_KEYS}
    rest = {each: value for each, value in given.items() if each not in own}
    stream = replace(DELIVERY_KEYS["stream"], type=one_of(*streams))
    values = values_of({**DELIVERY_KEYS, "stream": stream}, own, place)
    sink = sink_of(BY_KIND[values.pop("to")], rest, place)
    return DeliverySettings(name=name, sink=sink, **values)


T = TypeVar("T", bound=Sink)


def sink_of(kind: type[T], table: Mapping[str, Any], place: Place) -> T:
    """The sink of a kind that a table describes.

    Args:
        kind: the kind.
        table: the keys that belong to sinks, and no others.
        place: where the table stands, for errors.

    Raises:
        ConfigError: a key means nothing for this kind, or is missing, wrong or does not go together with another.
    """
    keys = keys_of(kind)
    for each in table:
        if each in _SINK_KEYS and each not in keys:
            raise place.wrong(
                f"{each} has no meaning for a {kind.kind}", hint="remove it"
            )
    sink = of_table(kind, table, place)
    try:
        sink.check()
    except ConfigError as error:
        raise place.wrong(error.message, hint=error.hint) from None
    return sink


DELIVERY_KEYS: Mapping[str, Key] = {
    "to": Key("to", one_of(*BY_KIND), "the kind of the receiver", is_required=True),
    **keys_of(DeliverySettings),
}
"""The keys of a delivery, besides those of its sink."""

_SINK_KEYS = tuple(dict.fromkeys(each for sink in SINKS for each in keys_of(sink)))
