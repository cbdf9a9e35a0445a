"""Where the results of a check go."""

from collections.abc import Sequence
from datetime import date

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.observed import Verdict, note_verdicts
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.finding import COUNTED, Finding, as_rows, data_label


def record(
    home: Home,
    day: date,
    findings: Sequence[Finding],
    *,
    checked_us: int,
    engine: Engine = LOCAL,
) -> None:
    """Puts findings into the table `quality` in place of earlier ones of that day and these tables; none: nothing.

    Args:
        home: where the table lies.
        day: the day that was checked (UTC).
        findings: what was found.
        checked_us: when, us since 1970.
        engine: writes the table.
    """
    if not findings:
        return
    names = ", ".join(sorted({f"'{finding.table}'" for finding in findings}))
    rows = as_rows(list(findings), day=day, checked_us=checked_us)
    # Findings of streams that were not checked now stay.
    predicate = f"date = '{day.isoformat()}' AND \"table\" IN ({names})"
    engine.replace(
        home.table("quality"), rows, load_contract("quality"), predicate=predicate
    )
    for finding in findings:
        _note(home, finding)


def _note(home: Home, finding: Finding) -> None:
    """Notes the verdict on a rule about a table; of what is merely counted, or could not be judged, there is none."""
    if finding.verdict not in ("kept", "broken"):
        return
    name, _, part = finding.table.partition("/")
    # What a stream's own contract says of its data is about its fixes.
    table = "positions" if finding.table == data_label(part) else name
    verdict = Verdict(
        rule=finding.rule, passed=finding.passed, severity=finding.severity
    )
    whole = home.table(table)
    path = whole if tables.exists(whole) else home.table(table, part or None)
    note_verdicts(path, [verdict])


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
