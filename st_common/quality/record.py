"""Which closed days still want a check, and where the results of one go."""

from collections.abc import Mapping, Sequence
from datetime import date

from st_common import tables
from st_common.contracts import load_contract
from st_common.home import Home
from st_common.ops.days import is_closed
from st_common.ops.history import days_of
from st_common.quality.check import StreamDay
from st_common.quality.finding import as_rows
from st_common.settings import StreamSettings


def unchecked_days(home: Home, streams: Mapping[str, StreamSettings]) -> list[date]:
    """The days that have positions, are closed and were not checked yet for some stream; oldest first, each once."""
    path = home.table("quality")
    checked = (
        tables.read(path, columns=["date", "table"]).to_pylist()
        if tables.exists(path)
        else []
    )
    done = {(row["date"], row["table"]) for row in checked}
    return sorted(
        {
            day
            for name in streams
            for day in days_of(home.table("positions", name))
            if is_closed(home, name, day) and (day, f"positions/{name}") not in done
        }
    )


def record(
    home: Home, day: date, stream_days: Sequence[StreamDay], *, checked_us: int
) -> int:
    """Puts findings into the table `quality` in place of earlier ones of that day and these tables.

    Args:
        home: where the table lies.
        day: the day that was checked (UTC).
        stream_days: what was found, stream by stream.
        checked_us: when, us since 1970.

    Returns:
        How many findings there are.
    """
    findings = [finding for stream in stream_days for finding in stream.findings]
    if not findings:
        return 0
    names = ", ".join(sorted({f"'{finding.table}'" for finding in findings}))
    rows = as_rows(findings, day=day, checked_us=checked_us)
    # Findings of streams that were not checked now stay.
    predicate = f"date = '{day.isoformat()}' AND \"table\" IN ({names})"
    tables.replace(
        home.table("quality"), rows, load_contract("quality"), predicate=predicate
    )
    return len(findings)
