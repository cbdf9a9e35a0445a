"""Where the results of a check go."""

from collections.abc import Sequence
from datetime import date

from st_common import tables
from st_common.contracts import load_contract
from st_common.home import Home
from st_common.quality.finding import COUNTED, Finding, as_rows


def record(
    home: Home, day: date, findings: Sequence[Finding], *, checked_us: int
) -> int:
    """Puts findings into the table `quality` in place of earlier ones of that day and these tables.

    Args:
        home: where the table lies.
        day: the day that was checked (UTC).
        findings: what was found.
        checked_us: when, us since 1970.

    Returns:
        How many findings there are.
    """
    if not findings:
        return 0
    names = ", ".join(sorted({f"'{finding.table}'" for finding in findings}))
    rows = as_rows(list(findings), day=day, checked_us=checked_us)
    # Findings of streams that were not checked now stay.
    predicate = f"date = '{day.isoformat()}' AND \"table\" IN ({names})"
    tables.replace(
        home.table("quality"), rows, load_contract("quality"), predicate=predicate
    )
    return len(findings)


def release_label(stream: str) -> str:
    """What the rows of `quality` about days that were released by hand call their table: `release/taxis`."""
    return f"release/{stream}"


def release(home: Home, stream: str, day: date, why: str, *, checked_us: int) -> None:
    """Notes in `quality` that a day may leave the system though it breaks its contract; a later check leaves it so.

    Args:
        home: where the table lies.
        stream: the stream.
        day: the day (UTC).
        why: for people.
        checked_us: now, us since 1970.
    """
    released = Finding(
        table=release_label(stream),
        rule="released",
        severity="info",
        passed=True,
        observed=1.0,
        expected=COUNTED,
        rows=0,
        details=why,
    )
    record(home, day, [released], checked_us=checked_us)
