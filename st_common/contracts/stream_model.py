"""What a stream promises about its data, day by day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from st_common.contracts.measures import COLUMN_MEASURES, MEASURES, Measure
from st_common.contracts.rules import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRule:
    """One promise about a day: a measure stays between two bounds, both allowed.

        DataRule(name="volume", measure="fixes_to_usual", minimum=0.5)   the day has at least half of the usual fixes

    Attributes:
        name: unique in its contract.
        measure: a name in `MEASURES`, or with a column in `COLUMN_MEASURES`.
        column: the attribute that is measured, or `x` or `y`; None: the stream as a whole.
        arguments: of the measure, by name, defaults included; of a column its bounds or its known values.
        minimum: the smallest value that is kept; None: there is none.
        maximum: the largest; None: there is none.
        severity: how much a breach weighs.
        description: for people; "": it is made of the measure and its bounds.
    """

    name: str
    measure: str
    column: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    minimum: float | None = None
    maximum: float | None = None
    severity: Severity = "error"
    description: str = ""

    @property
    def measured(self) -> Measure:
        """What is measured."""
        return (MEASURES if self.column is None else COLUMN_MEASURES)[self.measure]

    @property
    def expected(self) -> str:
        """What the rule demands, for people: `fixes, of as many as usual: at least 0.5 times`."""
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (
                ("at least", self.minimum),
                ("at most", self.maximum),
            )
            if bound is not None
        ]
        said = self.description or self._said()
        return f"{said}: {' and '.join(bounds)} {self.measured.unit}"

    def breach(
        self, day: date, value: float | None, usual: str, some: Sequence[str]
    ) -> str:
        """What people are told of a day that breaks the rule.

        Args:
            day: the day (UTC).
            value: of the measure; None where it could not be measured.
            usual: what the day was compared with, in short; "" for nothing.
            some: a few of what breaks the rule, such as the names of objects.
        """
        if value is None:
            return f"{self.name} of {day} could not be measured"
        is_whole = value.is_integer() or value >= 10
        return self.measured.breach.format(
            day=day,
            value=f"{value:,.0f}" if is_whole else f"{value:,.2g}",
            percent=f"{value:.2%}" if value < 0.01 else f"{value:.0%}",
            column=self.column,
            some=f" ({', '.join(some)})" if some else "",
            usual=usual,
        )

    def _said(self) -> str:
        given = ", ".join(f"{key} {value}" for key, value in self.arguments.items())
        where = f"{self.column}: " if self.column else ""
        return f"{where}{self.measured.title}{f' ({given})' if given else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """An attribute as the contract promises it.

    Attributes:
        name: the attribute.
        type: its physical type, a name in `KINDS`.
        unit: as `conf/streams.toml` declares it; "" for none.
    """

    name: str
    type: str
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContract:
    """What one stream promises about each day of its data.

    Attributes:
        name: of the stream, and of its file.
        version: of the contract.
        weekdays: those on which data are promised, 0 for Monday; empty where nothing is said of days.
        attributes: those that it speaks of.
        rules: what is promised.
    """

    name: str
    version: str
    weekdays: frozenset[int]
    attributes: tuple[Attribute, ...]
    rules: tuple[DataRule, ...]

    def is_promised(self, day: date) -> bool:
        """Whether a day without data breaks the contract."""
        return day.weekday() in self.weekdays
