"""Fixes as the reference reads them: who is a member, who qualified, and what expressions say of them, by DuckDB.

Expressions were checked when the query was registered.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from pyproj import Geod

from st_common import tables
from st_common.asking import CLOSED_OFF, asking
from st_common.config.home import Home
from st_common.geometry.space import Space
from st_common.query import near_columns
from st_common.query.cells import add_cells, calls_cells
from st_common.query.pair_columns import BORDER, DISTANCE, speed_tag
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Ints, Metric, Objects

_GEOD = Geod(ellps="WGS84")
ATTRIBUTE = (
    "@"  # before the names of attributes, so that none is taken for a column of ours
)
_PLAIN = ("object", "x", "y", "elapsed_s")


def values_of(
    frame: pd.DataFrame,
    texts: Sequence[str],
    attributes: Sequence[str],
    *,
    space: Space,
) -> pd.DataFrame:
    """The value of each expression, null where it has none or fails, per row of the frame; columns are 0, 1, .."""
    fixes = _named(frame, attributes, space=space)
    return _evaluated(
        fixes.assign(place_of_row=np.arange(len(frame))), texts
    ).set_index(frame.index)


def values_of_pairs(
    one: pd.DataFrame,
    other: pd.DataFrame,
    text: str,
    attributes: Sequence[str],
    *,
    space: Space,
) -> np.ndarray:
    """The value of an expression for pairs of rows side by side; object[n], None where it has none or fails."""
    first = _named(one, attributes, space=space).reset_index(drop=True)
    second = _named(other, attributes, space=space).reset_index(drop=True)
    far, turned = _between(first, second, space=space)
    pairs = pd.concat([first, second.add_prefix("other.")], axis=1).assign(
        **{"pair.distance_m": far, "pair.bearing_deg": turned},
        place_of_row=np.arange(len(first)),
    )
    column = _evaluated(pairs, [text])["0"].astype(object)
    return column.where(column.notna(), None).to_numpy(object)


def values_beside(
    frame: pd.DataFrame,
    columns: Mapping[str, np.ndarray],
    text: str,
    attributes: Sequence[str],
    *,
    space: Space,
) -> np.ndarray:
    """The value of an expression for each row beside other columns; object[n], None where it has none or fails."""
    more = {
        name: pd.Series(values, dtype=_type_of(name))
        for name, values in columns.items()
    }
    own = _named(frame, attributes, space=space).reset_index(drop=True)
    fixes = own.assign(**more, place_of_row=np.arange(len(frame)))
    column = _evaluated(fixes, [text])["0"].astype(object)
    return column.where(column.notna(), None).to_numpy(object)


def _type_of(name: str) -> str:
    if name == near_columns.RANK:
        return "Int64"
    is_far = name in (BORDER, DISTANCE, near_columns.DISTANCE)
    return "float" if is_far or speed_tag(name) is not None else "string"


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


def _between(
    one: pd.DataFrame, other: pd.DataFrame, *, space: Space
) -> tuple[np.ndarray, np.ndarray]:
    """How far the second place is from the first and in which direction; a direction needs two places."""
    x1, y1, x2, y2 = (
        side[name].to_numpy(float) for side in (one, other) for name in "xy"
    )
    if space.is_flat:
        far = np.hypot(x2 - x1, y2 - y1)
        angle = 90.0 - np.degrees(np.arctan2(y2 - y1, x2 - x1))
    else:
        angle, _, far = _GEOD.inv(x1, y1, x2, y2)
    return np.asarray(far), np.where(far == 0, np.nan, np.mod(angle, 360.0))


def _named(
    frame: pd.DataFrame, attributes: Sequence[str], *, space: Space
) -> pd.DataFrame:
    """The columns that expressions may name."""
    columns = [
        *_PLAIN,
        *(ATTRIBUTE + name for name in attributes),
        *(["partner"] if "partner" in frame else []),
    ]
    return (
        frame[columns]
        .rename(columns=lambda name: name.removeprefix(ATTRIBUTE))
        .assign(
            speed_mps=_speed(frame, space=space),
            heading_deg=_heading(frame, space=space),
            acceleration_mps2=_acceleration(frame, space=space),
            event_ts=pd.to_datetime(frame["ts"], unit="us"),
        )
    )


def _evaluated(fixes: pd.DataFrame, texts: Sequence[str]) -> pd.DataFrame:
    """The values of expressions in the order of `place_of_row`."""
    with _selected(fixes, texts, "ORDER BY place_of_row") as found:
        values: pd.DataFrame = found.df()
    return values


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
    with duckdb.connect(config=CLOSED_OFF) as connection:
        connection.execute("PRAGMA disable_optimizer")
        add_cells(connection)
        yield connection


def _heading(frame: pd.DataFrame, *, space: Space) -> np.ndarray:
    """The direction from the reading before; NaN without one."""
    columns = ("before_x", "before_y", "x", "y")
    x1, y1, x2, y2 = (frame[name].to_numpy(float) for name in columns)
    known = frame["elapsed_s"].notna().to_numpy() & ~np.isnan(x1) & ~np.isnan(x2)
    ends = pd.DataFrame({"x": x1[known], "y": y1[known]})
    starts = pd.DataFrame({"x": x2[known], "y": y2[known]})
    out = np.full(len(frame), np.nan)
    out[known] = _between(ends, starts, space=space)[1]
    return out


def _speed(frame: pd.DataFrame, *, space: Space) -> np.ndarray:
    """Metres per second since the reading before; NaN without one."""
    way = _way(frame, "before", "", space=space)
    return np.asarray(way / frame["elapsed_s"].to_numpy())


def _acceleration(frame: pd.DataFrame, *, space: Space) -> np.ndarray:
    """How the speed has changed in a second since the reading before; NaN without two before."""
    way = _way(frame, "earlier", "before", space=space)
    change = _speed(frame, space=space) - way / frame["before_elapsed_s"].to_numpy()
    return np.asarray(change / frame["elapsed_s"].to_numpy())


def _way(frame: pd.DataFrame, start: str, end: str, *, space: Space) -> np.ndarray:
    """The distance from one reading to a later one ("" for the last); NaN where there is none."""
    x1, y1, x2, y2 = (
        frame[f"{which}_{name}".strip("_")].to_numpy(float)
        for which in (start, end)
        for name in "xy"
    )
    if space.is_flat:
        return np.asarray(np.hypot(x2 - x1, y2 - y1))
    known, way = ~np.isnan(x1), np.full(len(frame), np.nan)
    way[known] = _GEOD.inv(x1[known], y1[known], x2[known], y2[known])[2]
    return way


FeaturesOf = Callable[[], Features]
"""The features that a plan joins; never asked for without a join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What evaluation needs to know of the stream."""

    attributes: Sequence[str]
    space: Space

    @property
    def metric(self) -> Metric:
        """How places are measured: on the globe in another way than engines do, which leaves doubts."""
        return Metric(is_flat=self.space.is_flat, doubts=not self.space.is_flat)


@dataclass(frozen=True, slots=True)
class _Database:
    """What expressions say of the rows of a frame, by DuckDB."""

    frame: pd.DataFrame
    lookup: Lookup

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        if not len(rows):
            return objects([])
        frame = self.frame.iloc[rows]
        frame = frame if partners is None else frame.assign(partner=partners)
        own, space = self.lookup.attributes, self.lookup.space
        column = values_of(frame, [text], own, space=space)["0"].astype(object)
        return column.where(column.notna(), None).to_numpy(object)

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        return self.values(f"CAST({text} AS VARCHAR)", rows, partners)

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`."""
        if not len(rows):
            return objects([])
        both = self.frame.iloc[rows], self._beside(others)
        own, space = self.lookup.attributes, self.lookup.space
        return values_of_pairs(*both, text, own, space=space)

    def _beside(self, others: Ints) -> pd.DataFrame:
        """Rows of the frame; who has no partner (LEFT JOIN, -1) stands beside nothing: a row of nulls."""
        if not (others < 0).any():
            return self.frame.iloc[others]
        return self.frame.reindex(np.where(others < 0, len(self.frame), others))

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        if not len(rows):
            return objects([])
        own, space = self.lookup.attributes, self.lookup.space
        frame = self.frame.iloc[rows]
        return values_beside(frame, columns, text, own, space=space)

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects(values_of_rows([text], shown)[text])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        for own in self.lookup.attributes:
            if own.lower() == name.lower():
                quoted = own.replace('"', '""')
                return self.texts(f'"{quoted}"', rows)
        return objects([None] * len(rows))


def fixes_of(frame: pd.DataFrame, of: Lookup) -> Fixes:
    """The rows of a frame as the reference reads them."""
    return Fixes(
        ids=frame["object"].to_numpy(object),
        x=frame["x"].to_numpy(float),
        y=frame["y"].to_numpy(float),
        metric=of.metric,
        of=_Database(frame, of),
        rows=np.arange(len(frame)),
    )


def features_of(home: Home, layer: str, version: int) -> Features:
    """The features of one version of a layer, each once."""
    rows = tables.read(home.table("layers", layer), version=version).to_pandas()
    rows = rows[rows["home"]]
    return Features(
        fids=rows["fid"].to_numpy(object),
        kinds=rows["kind"].to_numpy(object),
        tags=[dict(tags) for tags in rows["tags"]],
        shapes=np.asarray(shapely.from_wkb(rows["geometry"].to_numpy())),
    )
