"""Expressions of plans over fixes, by DuckDB; they were checked when the query was registered."""

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
from pyproj import Geod

from st_common.geometry.space import Space

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
    columns = [
        *_PLAIN,
        *(ATTRIBUTE + name for name in attributes),
        *(["partner"] if "partner" in frame else []),
    ]
    fixes = (
        frame[columns]
        .rename(columns=lambda name: name.removeprefix(ATTRIBUTE))
        .assign(
            speed_mps=_speed(frame, space=space),
            event_ts=pd.to_datetime(frame["ts"], unit="us"),
            place_of_row=np.arange(len(frame)),
        )
    )
    listed = ", ".join(
        f'TRY({text}) AS "{number}"' for number, text in enumerate(texts)
    )
    with duckdb.connect(
        config={"threads": 1, "enable_external_access": False}
    ) as connection:
        connection.register("fixes", fixes)
        values: pd.DataFrame = connection.sql(
            f"SELECT {listed} FROM fixes ORDER BY place_of_row"  # noqa: S608
        ).df()
    values.index = frame.index
    return values


def _speed(frame: pd.DataFrame, *, space: Space) -> np.ndarray:
    if not space.is_flat:
        ends = [
            frame[name].to_numpy(float) for name in ("before_x", "before_y", "x", "y")
        ]
        known = ~np.isnan(ends[0])
        way = np.full(len(frame), np.nan)
        way[known] = _GEOD.inv(*(values[known] for values in ends))[2]
    else:
        way = np.hypot(
            *(
                frame[n].to_numpy(float) - frame[f"before_{n}"].to_numpy(float)
                for n in ("x", "y")
            )
        )
    return np.asarray(way / frame["elapsed_s"].to_numpy())
