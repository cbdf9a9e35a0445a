"""Places as a stream's fixes, archived as a stream that runs archives them: by the regions that its group has then."""

import numpy as np
import numpy.typing as npt

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from tests.kit.log_writer import bare_log

TABLES = (("positions", "grid"), ("rejects",))
ORDER = [("segment", "ascending"), ("row", "ascending")]
Floats = npt.NDArray[np.float64]


def stream_of_places(
    name: str, *, group: str = "default", crs: str = "EPSG:4326"
) -> StreamSettings:
    """A stream of rows `id, t, x, y`, as `archive` writes them."""
    return StreamSettings(
        name=name,
        format="csv",
        crs=crs,
        time_unit="s",
        max_ahead_s=None,
        group=group,
        columns=Columns(object="id", event_ts="t", x="x", y="y"),
    )


def archive(home: Home, stream: StreamSettings, x: Floats, y: Floats) -> None:
    """Puts places into the log of a stream, a fix a second, and its archive into `positions`.

    Args:
        home: the home folder.
        stream: see `stream_of_places`.
        x: float64[n].
        y: float64[n].
    """
    rows = zip(x.tolist(), y.tolist(), strict=True)
    lines = [f"o{n % 9},{n},{px!r},{py!r}" for n, (px, py) in enumerate(rows)]
    text = "\n".join(["id,t,x,y", *lines])
    bare_log(home.log(stream.name)).append(text.encode(), arrival_us=0)
    archived = Archive(home, stream)
    while archived.batch():
        pass


def run_through(home: Home, stream: StreamSettings) -> None:
    """Runs the local engine, and then the archive, to the end of a log, as a process that ends in order."""
    engine, archived = LocalEngine(home, stream), Archive(home, stream)
    while engine.batch():
        pass
    engine.close()
    while archived.batch():
        pass


def stored(home: Home) -> str:
    """What both tables hold, in the log's order; of an object that is gone x is NaN."""
    rows = [
        tables.read(home.table(*name)).sort_by(ORDER).to_pylist()
        for name in TABLES
        if tables.exists(home.table(*name))
    ]
    return repr(rows)


def archived_alone(home: Home, stream: StreamSettings) -> str:
    """What an archive stores that no engine hands anything: it reads all of the log."""
    archive = Archive(home, stream)
    while archive.batch():
        pass
    return stored(home)
