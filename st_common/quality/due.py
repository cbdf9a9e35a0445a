"""Which days want a check: those that are closed, and by the wall clock also those on which nothing came."""

from collections.abc import Mapping
from datetime import date, timedelta

from st_common import tables
from st_common.contracts import load_stream_contract
from st_common.errors import ContractError
from st_common.home import Home
from st_common.ops.days import is_closed
from st_common.ops.history import days_of
from st_common.quality.check import DAY_IS_CLOSED
from st_common.quality.data_check import data_label
from st_common.quality.shape import US_PER_DAY, day_start_us
from st_common.settings import StreamSettings


def is_due(home: Home, stream: str, day: date, *, now_us: int) -> bool:
    """Whether a day (UTC) of a stream can be judged.

    A day that the stream's clock has passed can. Of one that only the wall clock has passed, what should have come or
    has come by the wall clock can be judged: the data of a stream that promises some each day, and rejects.

    Args:
        home: where the tables lie.
        stream: the stream.
        day: the day.
        now_us: now, us since 1970.
    """
    if is_closed(home, stream, day):
        return True
    is_over = day_start_us(day) + US_PER_DAY <= now_us
    return is_over and (_is_daily(home, stream) or day in _reject_days(home, stream))


def unchecked_days(
    home: Home, streams: Mapping[str, StreamSettings], *, now_us: int
) -> list[date]:
    """The days that are due and were not checked yet for some stream, or were open then and are closed now.

    Args:
        home: where the tables lie.
        streams: the settings by name.
        now_us: now, us since 1970.

    Returns:
        Oldest first, each once.
    """
    checked = _checked(home)
    return sorted(
        {
            day
            for name in streams
            for day in _days(home, name, now_us=now_us)
            if is_due(home, name, day, now_us=now_us)
            and not _is_done(home, name, day, checked)
        }
    )


def _is_done(
    home: Home, stream: str, day: date, checked: Mapping[tuple[date, str], bool]
) -> bool:
    was_closed = checked.get((day, data_label(stream)))
    return was_closed is not None and (was_closed or not is_closed(home, stream, day))


def _checked(home: Home) -> dict[tuple[date, str], bool]:
    """Whether a day was closed when it was checked last, by day and label of the stream."""
    path = home.table("quality")
    if not tables.exists(path):
        return {}
    rows = tables.read(
        path,
        columns=["date", "table", "passed"],
        filters=[("rule", "=", DAY_IS_CLOSED)],
    )
    return {(row["date"], row["table"]): row["passed"] for row in rows.to_pylist()}


def _days(home: Home, stream: str, *, now_us: int) -> set[date]:
    """The days that have fixes or rejects of a stream; of a daily one all since its first that are over."""
    days = {*days_of(home.table("positions", stream)), *_reject_days(home, stream)}
    if days and _is_daily(home, stream):
        first = min(days)
        over = (now_us - day_start_us(first)) // US_PER_DAY
        days |= {first + timedelta(days=each) for each in range(over)}
    return days


def _is_daily(home: Home, stream: str) -> bool:
    """Whether a stream's contract promises data on each day; a contract that cannot be read is judged as if it did."""
    try:
        contract = load_stream_contract(stream, home.root)
    except ContractError:
        return True
    return contract is not None and contract.is_daily


def _reject_days(home: Home, stream: str) -> set[date]:
    """The days (UTC) of the wall clock on which rejects of a stream came."""
    path = home.table("rejects")
    if not tables.exists(path):
        return set()
    rows = tables.read(path, columns=["ingest_date"], filters=[("stream", "=", stream)])
    return set(rows["ingest_date"].unique().to_pylist())
