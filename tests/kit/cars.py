"""Cars that drive on a plane, for tests of engines: one stream, queries of all kinds, and what was told."""

from collections.abc import Callable
from typing import Any

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
QUERIES = """
REGISTER QUERY room AS SELECT * FROM cars INSIDE (0, 0, 50, 50);
REGISTER QUERY near AS SELECT * FROM cars KNN (3, 40, 40);
REGISTER QUERY pairs AS SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY n AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 50, 50) WINDOW 10 s;
REGISTER QUERY fence AS SELECT * FROM cars INSIDE (0, 0, 50, 50) DETECT ENTER, EXIT, DWELL 5 s;
REGISTER QUERY ways AS SELECT AVGSPD(*) FROM cars [RANGE '30 s'];
"""


def drive(
    home: Home,
    seconds: range,
    *,
    cars: int = 60,
    says: Callable[[int, int], bool] = lambda _car, _second: True,
) -> None:
    """A segment for each second: cars on ways of their own, a fix of each that says something then."""
    log = bare_log(home.log(CARS.name))
    for second in seconds:
        lines = ["id,t,x,y"]
        for car in range(cars):
            if says(car, second):
                x = (car * 7 + second * (1 + car % 5)) % 100
                lines.append(f"c{car},{second},{x},{(car * 13 + second) % 100}")
        log.append(("\n".join(lines) + "\n").encode(), arrival_us=second)


def told(home: Home) -> list[dict[str, Any]]:
    """The rows of `changes`, in their order."""
    changes = tables.read(home.table("changes", CARS.name))
    order = [("position", "ascending"), ("seq", "ascending")]
    rows: list[dict[str, Any]] = changes.sort_by(order).to_pylist()
    return rows
