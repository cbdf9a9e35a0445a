"""Where objects were when they left answers: `-` changes have no columns, their fixes are in the archive."""

import time

import numpy as np
import pandas as pd
import pyarrow as pa

from st_common.errors import TransientError
from st_common.home import Home
from st_common.levels import stored

WAIT_S = 30.0
_POLL_S = 0.1
_REACH_US = 86_400_000_000  # a fix that was longer ago is no place of an object any more


def places_of(home: Home, stream: str, rows: pa.Table) -> np.ndarray:
    """The place (x, y) of each change's object at its `fix_ts`: of its newest archived fix until then, else NaN.

    Waits for the archive, which comes behind the changes.

    Raises:
        TransientError: it does not come within WAIT_S.
    """
    if not len(rows):
        return np.empty((0, 2))
    _wait(home, stream, int(np.max(rows["position"].to_numpy())))
    ts = rows["fix_ts"].cast(pa.int64()).to_numpy()
    wanted = pd.DataFrame({"object": rows["object"].to_pylist(), "ts": ts, "at": np.arange(len(rows))})
    found = pd.merge_asof(wanted.sort_values("ts"), _fixes(home, stream, rows), on="ts", by="object")
    return found.sort_values("at")[["x", "y"]].to_numpy(np.float64)


def _fixes(home: Home, stream: str, rows: pa.Table) -> pd.DataFrame:
    """The fixes of these objects that may be meant, by time; of two with one time the first."""
    ts, kind = rows["fix_ts"].cast(pa.int64()).to_numpy(), rows["fix_ts"].type
    bounds = ((">=", int(ts.min()) - _REACH_US), ("<=", int(ts.max())))
    between = [("event_ts", op, pa.scalar(bound, pa.int64()).cast(kind)) for op, bound in bounds]
    objects = ("object", "in", sorted(set(rows["object"].to_pylist())))
    columns = ("object", "event_ts", "x", "y")
    end = int(np.max(rows["position"].to_numpy())) + 1
    found = stored.fixes(home, stream, 0, end, columns, *between, objects)
    times = found["event_ts"].cast(pa.int64())
    fixes = (
        found.select(["position", "object", "x", "y"]).append_column("ts", times).to_pandas().astype({"object": object})
    )
    fixes = fixes.dropna(subset=["x", "y"]).sort_values(["ts", "position"]).drop_duplicates(["object", "ts"])
    ordered: pd.DataFrame = fixes.drop(columns="position")
    return ordered


def _wait(home: Home, stream: str, position: int) -> None:
    end_s = time.monotonic() + WAIT_S
    while stored.archived_end(home, stream) <= position:
        if time.monotonic() >= end_s:
            raise TransientError(f"the archive of stream {stream!r} is behind its changes", hint="run the stream")
        time.sleep(_POLL_S)
