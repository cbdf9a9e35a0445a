"""What a check finds: one row of the table `quality`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from st_common.contracts import load_contract
from st_common.errors import TableError

DAY_IS_CLOSED = "day_is_closed"
"""The rule by which the table `quality` knows which days were checked, and whether they were closed then."""

CAN_BE_CHECKED = "can_be_checked"
"""The rule that is broken where a stream's contract or log cannot be read."""

AS_PROMISED = "attributes_are_as_promised"
"""The rule about the settings of a stream, not about a day's data."""

COUNTED = "counted"
"""What `expected` says of a row that only counts something and demands nothing."""


def data_label(stream: str) -> str:
    """What the findings on the data of a stream call their table: `data/taxis`."""
    return f"data/{stream}"


IS_READ = "is_read"
"""The rule that is broken where a table is refused, for another program has altered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found of one rule, on one day of one table.

    Attributes:
        table: the table, and of which stream: `positions/taxis`.
        rule: the rule's name.
        severity: `error`, `warning` or `info`.
        passed: whether the rule holds; a rule that could not be measured does not.
        observed: how many rows break it, what a rule measures, or a count that demands nothing; None when it could not
            be measured, or with `passed`, when there was nothing to judge.
        expected: what it demands, for people; `COUNTED` for a mere count.
        rows: how many were looked at.
        details: examples of rows that break it, as JSON; or what is wrong, in words.
        sentence: of a broken rule on a stream's data, what happened and what it may be, for who runs the stream.
    """

    table: str
    rule: str
    severity: str
    passed: bool
    observed: float | None
    expected: str
    rows: int
    details: str = ""
    sentence: str = ""

    @property
    def is_breach(self) -> bool:
        """Whether the day's data break a promise: a rule of severity error does not hold."""
        return not self.passed and self.severity == "error"

    @property
    def verdict(self) -> str:
        """`kept`, `broken`, `grey` where there was nothing to judge, or `counted` where nothing is demanded."""
        if self.is_grey:
            return "grey"
        if self.expected == COUNTED:
            return "counted"
        return "kept" if self.passed else "broken"

    @property
    def is_grey(self) -> bool:
        """Whether there was nothing to judge; `details` says why."""
        return self.passed and self.observed is None


def found_of(table: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What a check finds of a table; of one that is refused that, so that the others are checked all the same.

    Args:
        table: what the findings call it.
        check: gives them.
    """
    try:
        return list(check())
    except TableError as error:
        return [unread(table, IS_READ, error)]


def unread(table: str, rule: str, error: TableError) -> Finding:
    """A rule that is broken because a table cannot be read."""
    return Finding(
        table=table,
        rule=rule,
        severity="error",
        passed=False,
        observed=None,
        expected="the table can be read",
        rows=0,
        details=str(error),
        sentence=f"another program altered {table}: {error}",
    )


def as_rows(findings: list[Finding], *, day: date, checked_us: int) -> pa.Table:
    """The findings as rows of the table `quality`.

    Args:
        findings: in the order of the rows.
        day: the day that was checked (UTC).
        checked_us: when it was, us since 1970.
    """
    schema = load_contract("quality").arrow_schema()
    columns = {
        name: [getattr(finding, name) for finding in findings]
        for name in Finding.__dataclass_fields__
    }
    columns |= {
        "verdict": [finding.verdict for finding in findings],
        "date": [day] * len(findings),
        "checked_ts": [checked_us] * len(findings),
    }
    return pa.table(
        {field.name: pa.array(columns[field.name], field.type) for field in schema},
        schema=schema,
    )
