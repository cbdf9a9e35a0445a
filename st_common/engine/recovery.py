"""What an engine sees to before it starts: tables that a power cut tore are whole again (SPEC S2)."""

from collections.abc import Iterable

from st_common import tables
from st_common.engine.owner import now_us
from st_common.home import Home
from st_common.ops.alerts import Alert, append_alert

_OF_STREAM = ("changes", "positions", "latest")
_OF_ALL = ("rejects", "snapshots", "queries")


def recover_tables(home: Home, stream: str) -> None:
    """Brings the tables that are made from a stream's log back to their last whole versions, and alerts if it had to.

    Raises:
        FairwayError: one is damaged beyond that; it names the file and the way out.
    """
    paths = [*(home.table(name, stream) for name in _OF_STREAM), *(home.table(name) for name in _OF_ALL)]
    alert(home, stream, [notice for path in paths if (notice := tables.recover(path)) is not None])


def alert(home: Home, stream: str, notices: Iterable[str]) -> None:
    """Writes what people should know to the alerts."""
    for notice in notices:
        append_alert(home, Alert(ts=now_us(), stream=stream, level="warning", text=notice))
