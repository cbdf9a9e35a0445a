"""What statements would do to a home, as far as they were carried out on paper."""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from st_common.config.stream import StreamSettings
from st_common.layers.table_settings import TableSettings
from st_common.query.area_store import NamedArea
from st_common.query.control import QueryRow
from st_common.query.group_names import GroupOf
from st_common.query.layer_change import FeatureOf
from st_common.query.names import LayerTags
from st_common.query.problem import Problem, did_you_mean
from st_common.query.shown import ToShow
from st_common.query.terms import Types

LayerStream = Callable[
    [str, Iterable[str], Iterable[str]], tuple[dict[str, Any], StreamSettings]
]
"""Gives the stream of a layer's features by its name, the expressions about it, and the tags that it has had."""

_HINTED = 5


def _no_layer(
    layer: str, texts: Iterable[str], before: Iterable[str]
) -> tuple[dict[str, Any], StreamSettings]:
    """What gives the stream of a layer where none is known."""
    raise KeyError(layer, texts, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The statements carried out on paper, in their order.

    `latest` is the newest control row of every name, and `areas` the named areas by their names in small letters,
    before and then after the statements. Rows that are only drafted have position -1 and no version of their layer.
    `created`, `replaced` and `removed` are names of areas. `tables` are the settings of the streams that were created,
    by name, likewise; statements make and drop `streams_created` and `streams_dropped`, and `joints` are those of the
    joint streams that queries over two need; `log_end` gives the number of the next segment of a stream's log. Of all
    `streams`, also those that the text itself makes, `settled` are in the settings. Of a layer that FROM names,
    `layer_stream` gives the stream of its features; `layer_tables` are the settings of those, and `layers_declared`
    those that a query is registered about for the first time, or with more tags. `shown` is what SHOW and EXPLAIN ask
    for, each at its place. `layers` are the names of layers and tables, before and then after the statements, which
    make `tables_created`, each as it is `declared` somewhere in the text, and drop `tables_dropped`.
    """

    streams: dict[str, StreamSettings]
    layers: set[str]
    latest: MutableMapping[str, QueryRow]
    owner: str
    arrival_us: int
    tags_of: LayerTags
    group_of: GroupOf
    feature_of: FeatureOf
    areas: dict[str, NamedArea] = field(default_factory=dict)
    rows: list[QueryRow] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    tables: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    joints: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    log_end: Callable[[str], int] = field(default=lambda _: 0)
    settled: frozenset[str] = frozenset()
    layer_stream: LayerStream = _no_layer
    layer_tables: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    layers_declared: list[str] = field(default_factory=list)
    streams_created: list[str] = field(default_factory=list)
    streams_dropped: list[str] = field(default_factory=list)
    declared: dict[str, TableSettings] = field(default_factory=dict)
    tables_created: list[str] = field(default_factory=list)
    tables_dropped: list[str] = field(default_factory=list)
    shown: list[ToShow] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    _folded: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folded.update({name.casefold(): name for name in self.latest})

    def known(self, name: str) -> tuple[str, QueryRow | None]:
        """The name of a query as it was first registered, whatever the case, with its newest row; or a new name."""
        called = self._folded.get(name.casefold())
        if called is None:
            return name, None
        called = name if name in self.latest else called
        return called, self.latest[called]

    def near(self, name: str, known: Iterable[str]) -> str:
        """What may have been meant; not where very much is wrong, for a hint compares a name with all others."""
        return did_you_mean(name, known) if len(self.problems) < _HINTED else ""

    def add(self, row: QueryRow) -> None:
        """Takes a row for carried out."""
        self.latest[row.name] = row
        self._folded.setdefault(row.name.casefold(), row.name)
        self.rows.append(row)
