"""What workers must know of a call: the queries as control rows, the settings, the layers."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.engine.cross_shard import NOBODY, Shards, asked_by
from st_common.engine.packets import step_settings
from st_common.errors import ConfigError, LayerError, QueryError
from st_common.layers.features import Features
from st_common.layers.in_memory import index_of
from st_common.layers.index import LayerIndex
from st_common.layers.rows import layer_rows
from st_common.layers.table import replace_rows, table_path
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.operators.events.packet import Packet, control_packet
from st_common.operators.state.settings import Settings
from st_common.partitioning.regions import whole
from st_common.query.area_store import HomeAreas
from st_common.query.builder import QueryBuilder
from st_common.query.built import statement_of
from st_common.query.plan import Plan
from st_common.query.plan_json import builder_of
from st_common.query.registry import carry_out
from st_common.query.text import Statement, parse

Queries = str | Mapping[str, Plan | QueryBuilder]
_GROUP = "default"
_OWNER = "continuous"


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the shards of a call begin with; shipped to each worker once.

    Attributes:
        stream: the settings by which rows are judged and stepped.
        controls: the payloads of the control segments that register the queries.
        layers: the rows of each layer, by its name.
        following: the shards that follow all objects: they judge a query which asks where others are.
        shards: how many there are.
    """

    stream: StreamSettings
    controls: tuple[bytes, ...]
    layers: Mapping[str, pa.Table]
    following: Shards
    shards: int

    def settings(self, shard: int) -> Settings:
        """Those of the step of one shard."""
        return step_settings(self.stream, shard=shard, shards=self.shards)

    def control_packets(self) -> list[Packet]:
        """The packets that every shard begins with."""
        return [
            control_packet(number, payload, stream=self.stream.name)
            for number, payload in enumerate(self.controls)
        ]

    def layer_of(self, layer: str, _version: int) -> LayerIndex:
        """The index of a layer, as `step` takes it: there is one version."""
        return self._indexes[layer]

    @cached_property
    def _indexes(self) -> dict[str, LayerIndex]:
        space = self.stream.space
        return {name: index_of(rows, space=space) for name, rows in self.layers.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Without indexes, which each worker makes for itself."""
        return {k: v for k, v in self.__dict__.items() if k != "_indexes"}


def stream_settings(
    name: str, attributes: Mapping[str, str], options: Mapping[str, Any]
) -> StreamSettings:
    """The settings of the stream that a DataFrame is, checked as those of a file.

    Raises:
        ConfigError: an option is unknown, wrong, or has no meaning here.
    """
    columns = {"object": "object", "event_ts": "event_ts", "x": "x", "y": "y"}
    unknown = set(options) - _OPTIONS
    if unknown:
        raise ConfigError(
            f"continuous: there is no option {min(unknown)!r}",
            hint=f"there are {', '.join(sorted(_OPTIONS))}",
        )
    table = {
        **options,
        "format": "csv",
        "columns": {**columns, "gone": "gone"},
        "attributes": dict(attributes),
        "max_ahead_s": "off",
    }
    return stream_of_table(name, table, Path("continuous"))


_OPTIONS = {
    "crs",
    "lateness_s",
    "silence_s",
    "tick_s",
    "max_speed_mps",
    "window_rows",
    "drop_null_island",
    "position_filter",
}


def prepare(
    queries: Queries,
    stream: StreamSettings,
    layers: Mapping[str, Features],
    *,
    shards: int,
) -> Prepared:
    """Registers the queries in a home that is gone afterwards, so that they are checked as everywhere.

    Args:
        queries: statements as a text, or plans and builders by name.
        stream: the settings.
        layers: the features of each layer.
        shards: how many there are to be.

    Raises:
        QueryError: what is wrong with the queries, with its place in the text.
        LayerError: some features of a layer cannot be used.
    """
    with tempfile.TemporaryDirectory(prefix="fairway-") as folder:
        home = Home(Path(folder))
        rows = {name: _stored(home, name, found) for name, found in layers.items()}
        statements = _statements(queries, HomeAreas(home))
        carry_out(home, {stream.name: stream}, statements, owner=_OWNER, now_us=0)
        log = Log(home.log(stream.name))
        segments = list(log.segments(0))
        controls = tuple(log.read(segment) for segment in segments)
        asked = [asked_by(control_rows(log, each), shards).all for each in segments]
    return Prepared(
        stream=stream,
        controls=controls,
        layers=rows,
        following=NOBODY.union(*asked),
        shards=shards,
    )


def _stored(home: Home, layer: str, features: Features) -> pa.Table:
    """Stores a layer, and gives its rows.

    Raises:
        LayerError: there is none, or some cannot be used.
    """
    if features.rejected or not len(features.fids):
        counts = ", ".join(f"{n} {why}" for why, n in features.rejected.items())
        raise LayerError(
            f"layer {layer!r}: {sum(features.rejected.values())} of {features.wanted} features"
            f" cannot be used: {counts or 'there are none'}",
            hint="leave them out of the DataFrame, or mend them, as by ST_MakeValid",
        )
    rows = layer_rows(features, whole(_GROUP))
    replace_rows(table_path(home, layer), rows)
    return rows


def _statements(queries: Queries, areas: HomeAreas) -> Sequence[Statement]:
    if not isinstance(queries, str):
        built = [(name, *builder_of(what)) for name, what in queries.items()]
        return [statement_of(step, name, places=at) for name, step, at in built]
    statements = parse(queries, areas=areas)
    for one in statements:
        if one.op not in ("register", "create_area"):
            raise QueryError(
                f"line {one.line}: only REGISTER QUERY and CREATE AREA have a meaning here",
                hint="a pipeline's queries are fixed when it is made",
            )
    return statements
