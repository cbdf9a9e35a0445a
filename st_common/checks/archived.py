"""What the tables of a home bring to a check: events of its objects, and what expressions and layers say of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from st_common import tables
from st_common.asking import CLOSED_OFF, asking, opened
from st_common.checks.history import (
    Controls,
    Events,
    History,
    Recorded,
    Times,
    clock_of,
    events_of,
)
from st_common.config.filters import Filters as UserFilters
from st_common.config.filters import filter_method, require_filter
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.geometry.space import Space
from st_common.history.stored import FILTERED, has_filtered
from st_common.layers.table import AT_HOME, read_rows
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.position import position_of, segment_of
from st_common.query import near_columns
from st_common.query.cells import add_cells, calls_cells
from st_common.query.pair_columns import BORDER, DISTANCE, speed_tag
from st_common.query.tuples import Element, Feature
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Bools, Ints, Metric, Objects
from st_common.reference.motion import between, motion_of

if TYPE_CHECKING:
    from st_common.tables.pruning import Filters

ATTRIBUTE = "@"
"""Before the names of attributes, so that none is taken for a column of ours."""
_TIMES = ["segment", "row", "event_ts"]
_PLAIN = ["object", "x", "y", "gone"]
_OF_TUPLE = ("object", "event_ts", "x", "y")
_TYPES = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """A stream's history from the tables of its home: see `Source`.

    Attributes:
        home: where the tables lie.
        unit_m: how many metres a unit of the plane is.
    """

    home: Home
    unit_m: float

    def features(self, layer: str, version: int) -> Features:
        """See `Source.features`."""
        rows = read_rows(self.home, layer, version, filters=AT_HOME).to_pandas()
        return Features(
            fids=rows["fid"].to_numpy(object),
            kinds=rows["kind"].to_numpy(object),
            tags=[dict(tags) for tags in rows["tags"]],
            shapes=np.asarray(shapely.from_wkb(rows["geometry"].to_numpy())),
        )

    def of_rows(
        self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """See `Source.of_rows`."""
        return values_of_rows(texts, rows)


def controls_of(log: Log, end: int) -> Controls:
    """The control rows of a log before a position, each with its own, in their order."""
    rows = [
        (position_of(segment.number, number), row)
        for segment in log.control_segments(0, clocks=True)
        for number, row in enumerate(control_rows(log, segment))
    ]
    return [(position, row) for position, row in rows if position < end]


def archived_history(
    home: Home,
    stream: StreamSettings,
    controls: Controls,
    end: int,
    objects: Collection[str] | None = None,
    since: datetime | None = None,
) -> tuple[History, pd.DataFrame]:
    """What the table `positions` and the control rows tell of a stream before the position `end`.

    With it the table of its events: a row for each with the columns of its fix. Only those
    of some `objects` where they are named, by the clock of all, and from an event time on: what is older makes none
    late, and none of them newer.
    """
    path = home.table("positions", stream.name)
    columns = [*_TIMES, *_PLAIN, *stream.attributes]
    columns += [FILTERED] if has_filtered(path) else []
    bounds: Filters = [("segment", "<=", segment_of(end))]
    bounds += [("event_ts", ">=", since)] if since is not None else []
    mine: Filters = [("object", "in", list(objects))] if objects is not None else []
    stored = _before(tables.read(path, columns=columns, filters=bounds + mine), end)
    rows, times = _frame_of_rows(stored, stream), times_of(stream)
    recorded = recorded_of(rows)
    position, ts = recorded.position, recorded.ts
    if objects is not None and len(ts):
        # What is older than all of them moves no clock past one.
        oldest = pa.scalar(int(ts.min()), pa.timestamp("us", tz="UTC")).as_py()
        bounds = [("segment", "<=", segment_of(end)), ("event_ts", ">=", oldest)]
        others = _before(tables.read(path, columns=_TIMES, filters=bounds), end)
        position, ts = others["position"].to_numpy(), _event_us(others)
    clock = clock_of(position, ts, controls, times)
    events = events_of(recorded, clock, times)
    frame = _frame_of(rows, events)
    history = History(
        events=events,
        fixes=fixes_of(frame, tuple(stream.attributes), stream.space, stream.filters),
        clock=clock,
        times=times,
        source=Archived(home=home, unit_m=stream.unit_m),
    )
    return history, frame


def _before(stored: pa.Table, end: int) -> pa.Table:
    """The rows before a position, in the order of the log, with the position of each."""
    segment, row = (stored[name].to_numpy().astype(np.int64) for name in _TIMES[:2])
    stored = stored.append_column("position", pa.array(position_of(segment, row)))
    kept = stored.filter(pc.less(stored["position"], end))
    return kept.sort_by("position")


def _event_us(stored: pa.Table) -> Ints:
    us: Ints = stored["event_ts"].cast(pa.int64()).to_numpy()
    return us


def fixes_of(
    frame: pd.DataFrame,
    attributes: Sequence[str],
    space: Space,
    filters: UserFilters = MappingProxyType({}),
) -> Fixes:
    """The rows of a frame as the reference reads them.

    Places on the globe are measured in another way than engines do, which leaves doubts.
    """
    metric = Metric(is_flat=space.is_flat, doubts=not space.is_flat)
    return Fixes(
        ids=frame["object"].to_numpy(object),
        x=frame["x"].to_numpy(float),
        y=frame["y"].to_numpy(float),
        metric=metric,
        of=Database(
            frame=frame, attributes_known=attributes, metric=metric, filters=filters
        ),
        rows=np.arange(len(frame)),
    )


def _frame_of_rows(stored: pa.Table, stream: StreamSettings) -> pd.DataFrame:
    """Archived fixes as a frame, attributes with the prefix `ATTRIBUTE`."""
    plain = stored.select([*_PLAIN, "position"]).to_pandas().astype({"gone": bool})
    own = stored.select(list(stream.attributes)).to_pandas(types_mapper=_TYPES.get)
    is_filtered: Any = False
    if FILTERED in stored.column_names:
        is_filtered = stored[FILTERED].is_valid().to_numpy()
    frame: pd.DataFrame = plain.join(own.add_prefix(ATTRIBUTE)).assign(
        ts=_event_us(stored), is_filtered=is_filtered
    )
    return frame


def recorded_of(rows: pd.DataFrame) -> Recorded:
    """Rows of fixes in log order as columns of numbers."""
    return Recorded(
        position=rows["position"].to_numpy(np.int64),
        ts=rows["ts"].to_numpy(np.int64),
        ids=rows["object"].to_numpy(object),
        code=pd.factorize(rows["object"])[0].astype(np.int64),
        x=rows["x"].to_numpy(float),
        y=rows["y"].to_numpy(float),
        gone=rows["gone"].to_numpy(bool),
        filtered=rows["is_filtered"].to_numpy(bool),
    )


def _frame_of(rows: pd.DataFrame, events: Events) -> pd.DataFrame:
    """A row for each event: the columns of its fix, and what it is."""
    frame: pd.DataFrame = rows.take(events.source).reset_index(drop=True)
    own = {"event": events.event, "effect": events.effect, "before": events.before}
    return frame.assign(kind=events.kind, **own)


def times_of(stream: StreamSettings) -> Times:
    """A stream's settings of time."""
    return Times(
        lateness_us=round(stream.lateness_s * 1e6),
        tick_us=round(stream.tick_s * 1e6),
        space=stream.space,
        window_rows=stream.window_rows,
        silence_us=None if stream.silence_s is None else round(stream.silence_s * 1e6),
    )


# -- what expressions say, by DuckDB; they were checked when the query was registered ----------------------------------


@dataclass(frozen=True, kw_only=True)
class Database:
    """What expressions say of the rows of a frame, by DuckDB: see `Expressions`."""

    frame: pd.DataFrame
    attributes_known: Sequence[str]
    metric: Metric
    filters: UserFilters

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        columns = self._columns(rows)
        if partners is not None:
            columns = columns.assign(partner=partners)
        return _value(columns, text)

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        return self.values(f"CAST({text} AS VARCHAR)", rows, partners)

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`; who has no partner (LEFT JOIN, -1) stands beside nothing: a row of nulls."""
        one, other = self._columns(rows), self._columns(others)
        x, y, to_x, to_y = (
            side[name].to_numpy(float) for side in (one, other) for name in "xy"
        )
        far, turned = between(x, y, to_x, to_y, self.metric)
        both = pd.concat([one, other.add_prefix("other.")], axis=1).assign(
            **{"pair.distance_m": far, "pair.bearing_deg": turned}
        )
        return _value(both, text)

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        more = {
            name: pd.Series(values, dtype=_type_of(name))
            for name, values in columns.items()
        }
        return _value(self._columns(rows).assign(**more), text)

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects(values_of_rows([text], shown)[text])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        for own in self.attributes_known:
            if own.lower() == name.lower():
                quoted = own.replace('"', '""')
                return self.texts(f'"{quoted}"', rows)
        return objects([None] * len(rows))

    def let_through(
        self,
        name: str,
        value: str | None,
        rows: Ints,
        features: tuple[str, Features] | None = None,
    ) -> Bools:
        """See `Expressions.let_through`; a class that takes tables is given one row at a time."""
        settings = require_filter(name, self.filters)
        method, takes_tables = filter_method(settings, joins=features is not None)
        names = [*_OF_TUPLE, *self.attributes_known]
        frame = self._named[list(dict.fromkeys(names))].iloc[rows]
        times = frame["event_ts"].dt.tz_localize("UTC")
        sides = [
            pa.Table.from_pandas(frame.assign(event_ts=times), preserve_index=False)
        ]
        tuples: list[list[Any]] = [[_element(row) for row in sides[0].to_pylist()]]
        if features is not None:
            layer, known = features
            sides.append(_feature_table(known))
            zipped = zip(sides[1].to_pylist(), known.tags, known.shapes, strict=True)
            tuples.append(
                [
                    Feature(**{**row, "tags": tags, "geometry": shape}, layer=layer)
                    for row, tags, shape in zipped
                ]
            )
        if takes_tables:
            tuples = [[side.slice(n, 1) for n in range(len(rows))] for side in sides]
        passed = [_passes(method, one, value) for one in zip(*tuples, strict=True)]
        return np.array(passed, np.bool_)

    def _columns(self, rows: Ints) -> pd.DataFrame:
        """The columns that expressions may name, of some rows; of -1 all null."""
        if not (rows < 0).any():
            return self._named.iloc[rows].reset_index(drop=True)
        places = np.where(rows < 0, len(self._named), rows)
        return self._named.reindex(places).reset_index(drop=True)

    @cached_property
    def _named(self) -> pd.DataFrame:
        """The same of all rows."""
        frame, own = self.frame, [ATTRIBUTE + name for name in self.attributes_known]
        ts, before = (frame[name].to_numpy(np.int64) for name in ("ts", "before"))
        x, y = (frame[name].to_numpy(float) for name in "xy")
        motion = motion_of(x, y, ts, before, self.metric)
        named = frame[["object", "x", "y", *own]].rename(
            columns=lambda name: name.removeprefix(ATTRIBUTE)
        )
        return named.assign(event_ts=pd.to_datetime(frame["ts"], unit="us")).assign(
            **{field.name: getattr(motion, field.name) for field in fields(motion)}
        )


def _element(row: dict[str, Any]) -> Element:
    return Element(**{name: row.pop(name) for name in _OF_TUPLE}, fields=row)


def _feature_table(features: Features) -> pa.Table:
    tags = [list(one.items()) for one in features.tags]
    return pa.table(
        {
            "fid": pa.array(features.fids, pa.string()),
            "kind": pa.array(features.kinds, pa.string()),
            "tags": pa.array(tags, pa.map_(pa.string(), pa.string())),
            "geometry": pa.array(shapely.to_wkb(features.shapes), pa.binary()),
        }
    )


def _passes(method: Any, given: tuple[Any, ...], value: str | None) -> bool:
    """What a filter of users says of one row; where it raises, or says neither, the row does not pass."""
    try:
        passed = np.asarray(method(*given, value))
    except MemoryError:
        raise
    except (Exception, SystemExit):  # noqa: BLE001 - what others wrote may raise anything
        return False
    return passed.dtype == np.bool_ and bool(passed.all())


def _type_of(name: str) -> str:
    if name == near_columns.RANK:
        return "Int64"
    is_far = name in (BORDER, DISTANCE, near_columns.DISTANCE)
    return "float" if is_far or speed_tag(name) is not None else "string"


def _value(columns: pd.DataFrame, text: str) -> Objects:
    """The value of an expression per row; None where it has none or fails."""
    if columns.empty:
        return objects([])
    placed = columns.assign(place_of_row=np.arange(len(columns)))
    with _selected(placed, [text], "ORDER BY place_of_row") as found:
        column = found.df()["0"].astype(object)
    values: Objects = column.where(column.notna(), None).to_numpy(object)
    return values


def values_of_rows(
    texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """The values of expressions of each row of a query, by expression; None for null."""
    if not rows or not texts:
        return {text: [] for text in texts}
    table = pa.Table.from_pylist([dict(row) for row in rows])
    with _selected(table, texts) as found:
        columns = found.to_arrow_table().columns
    return {
        text: column.to_pylist() for text, column in zip(texts, columns, strict=True)
    }


@contextmanager
def _selected(
    rows: pd.DataFrame | pa.Table, texts: Sequence[str], order: str = ""
) -> Iterator[duckdb.DuckDBPyRelation]:
    """The values of expressions, as columns 0, 1, .., null where one has none or fails."""
    listed = ", ".join(f'TRY({text}) AS "{at}"' for at, text in enumerate(texts))
    with _asking(calls_cells(listed)) as connection:
        connection.register("rows_asked", rows)
        yield connection.sql(f"SELECT {listed} FROM rows_asked {order}")  # noqa: S608 - checked expressions


@contextmanager
def _asking(with_cells: bool) -> Iterator[duckdb.DuckDBPyConnection]:  # noqa: FBT001 - of `_selected` alone
    """A connection for the words of users; functions in Python are seen in a whole database, so they have their own.

    DuckDB's optimiser is off: it moves parts out of TRY, and makes `n > -1` of `n + 1 > 0`, which also holds where the
    sum has no value.
    """
    if not with_cells:
        with asking(closed_off=True) as connection:
            connection.execute("PRAGMA disable_optimizer")
            yield connection
        return
    with opened(CLOSED_OFF) as connection:
        connection.execute("PRAGMA disable_optimizer")
        add_cells(connection)
        yield connection
