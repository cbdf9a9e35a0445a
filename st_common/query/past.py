"""Which past a question is about, and from when on a query that is registered knows it."""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """AS OF a time, or BETWEEN two.

        AS OF '2024-05-01T12:00Z'                   since None, until 12:00
        BETWEEN '2024-05-01' AND '2024-05-02'       since the 1st, 00:00, until the 2nd, 00:00; UTC

    Attributes:
        since: the first time of an interval, with a time zone; None: one time is asked about, which is `until`.
        until: the last time, which belongs to it, with a time zone.
    """

    since: datetime | None = None
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """FROM BEGINNING, or FROM a time: from where on a query knows the log before its registration.

    Attributes:
        since: the time, with a time zone; None: from the first fix on.
    """

    since: datetime | None = None


def time_written(text: str) -> datetime:
    """The time that a text gives: ISO 8601, UTC where no zone is given.

    Raises:
        ValueError: it gives none, or one outside of the years 1 to 9999 of UTC.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text} is no time of the years 1 to 9999") from None
    return time
