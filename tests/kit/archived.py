"""Places as a stream's fixes, archived as a stream that runs archives them: by the regions that its group has then."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from tests.kit.log_writer import bare_log
from tests.kit.oracle import judge
from tests.kit.oracle_rows import Fix, Row, Rules

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


def late_as_stored(home: Home) -> list[bool]:
    """Of each fix that the table holds, in the log's order, whether it says that it came too late."""
    path = home.table("positions", "grid")
    if not tables.exists(path):
        return []
    said: list[bool] = tables.read(path).sort_by(ORDER)["too_late"].to_pylist()
    return said


def late_as_judged(rows: Iterable[Row], rules: Rules) -> list[bool]:
    """The same by brute force, of the fixes of a case."""
    fixes = [row for row in rows if isinstance(row, Fix)]
    late = judge(rows, rules=rules).late_rows
    return [fix.position in late for fix in fixes]


def archived_alone(home: Home, stream: StreamSettings) -> str:
    """What an archive stores that no engine hands anything: it reads all of the log."""
    archive = Archive(home, stream)
    while archive.batch():
        pass
    return stored(home)
