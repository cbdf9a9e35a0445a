"""What can be measured of one day of a stream: the words that a stream's contract may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number about a day of a stream.

    Attributes:
        title: what it is, for people.
        unit: of the number: `share` is a part of one, `times` a ratio.
        arguments: what a contract may say besides, with the defaults; None: it must be said.
    """

    title: str
    unit: str
    arguments: Mapping[str, float | None] = field(default_factory=dict)


MEASURES: dict[str, Measure] = {
    "fixes": Measure(title="fixes", unit="fixes"),
    "fixes_to_usual": Measure(title="fixes, of as many as usual", unit="times"),
    "objects": Measure(title="objects seen", unit="objects"),
    "objects_to_usual": Measure(title="objects, of as many as usual", unit="times"),
    "missing_objects_share": Measure(
        title="of the objects that are usually seen, those that were not", unit="share"
    ),
    "empty_hours": Measure(
        title="hours without a fix that usually have some", unit="hours"
    ),
    "longest_gap_s": Measure(title="longest time without any fix", unit="s"),
    "longest_gap_to_usual": Measure(
        title="longest time without any fix, of the usual one", unit="times"
    ),
    "objects_with_gap_share": Measure(
        title="objects that were silent for longer than is usual for each",
        unit="share",
        arguments={"factor": 3.0, "at_least_s": 600.0},
    ),
    "freshness_s": Measure(title="from the last fix to the day's end", unit="s"),
    "rejects_share": Measure(
        title="of the records that arrived, those that are no fix", unit="share"
    ),
    "late_share": Measure(
        title="fixes that were too late to change an answer", unit="share"
    ),
    "double_share": Measure(
        title="fixes with the time of an earlier one of their object", unit="share"
    ),
    "jumps_share": Measure(
        title="fixes that are too far from the one before for any speed allowed",
        unit="share",
        arguments={"max_speed_mps": None},
    ),
    "jumping_objects_share": Measure(
        title="objects of which more than a part of the fixes are jumps: one id for two, as a rule",
        unit="share",
        arguments={"max_speed_mps": None, "at_most_share": 0.05},
    ),
    "clock_off_objects_share": Measure(
        title="objects whose times are, by the median, further from the arrival than allowed",
        unit="share",
        arguments={"at_most_s": 300.0},
    ),
}
"""Measures of a stream as a whole, by name."""

COLUMN_MEASURES: dict[str, Measure] = {
    "outside_share": Measure(title="values outside of their range", unit="share"),
    "unknown_share": Measure(title="values that are none of those known", unit="share"),
    "null_share": Measure(title="fixes without a value", unit="share"),
}
"""Measures of one attribute, or of x or y, by name."""
