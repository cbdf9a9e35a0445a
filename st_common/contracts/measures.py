"""What can be measured of one day of a stream: the words that a stream's contract may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number about a day of a stream.

    Attributes:
        title: what it is, for people.
        unit: of the number: `share` is a part of one, `times` a ratio.
        breach: what people are told when a day breaks a rule on it: a text with the fields `day`, `value`, `percent`
            (the value as one), `column`, `some` (examples in brackets), and `usual`, such as "a usual Saturday".
        arguments: what a contract may say besides, with the defaults; None: it must be said.
        is_of_few: it is about single objects: a day that breaks a rule on it still says what is usual of the others.
    """

    title: str
    unit: str
    breach: str
    arguments: Mapping[str, float | None] = field(default_factory=dict)
    is_of_few: bool = False


MEASURES: dict[str, Measure] = {
    "fixes": Measure(
        title="fixes",
        unit="fixes",
        breach="{day} has {value} fixes: does the feed still deliver?",
    ),
    "fixes_to_usual": Measure(
        title="fixes, of as many as usual",
        unit="times",
        breach="fixes of {day} are {value} times those of {usual}: is a part missing, or there twice?",
    ),
    "objects": Measure(
        title="objects seen",
        unit="objects",
        breach="{value} objects were seen on {day}: does a part of the fleet not report?",
    ),
    "objects_to_usual": Measure(
        title="objects, of as many as usual",
        unit="times",
        breach="objects of {day} are {value} times those of {usual}: does a part of the fleet not report?",
    ),
    "missing_objects_share": Measure(
        title="of the objects that are usually seen, those that were not",
        unit="share",
        breach="{percent} of the objects of {usual} were not seen on {day}{some}: do they not report?",
    ),
    "new_objects_share": Measure(
        title="objects that none of the usual days has",
        unit="share",
        breach="{percent} of the objects of {day} are new, against {usual}{some}: were ids changed?",
    ),
    "twin_objects_share": Measure(
        title="moving objects whose track, or a part of it, another object has too",
        unit="share",
        breach="{percent} of the objects of {day} have another one's track{some}: was a file sent twice, with new ids?",
        arguments={"at_least_share": 0.5, "at_least_fixes": 5.0},
    ),
    "empty_hours": Measure(
        title="hours without a fix that usually have some",
        unit="hours",
        breach="{day} has no fixes for {value} h that usually have some{some}: was the feed down?",
    ),
    "still_hours": Measure(
        title="hours in which objects report and, other than usual, nobody moves",
        unit="hours",
        breach="nobody moved for {value} h of {day} though objects reported{some}: is the feed frozen?",
    ),
    "frozen_objects_share": Measure(
        title="of the objects that usually move, those that reported all day from one place",
        unit="share",
        breach="{percent} of the objects that usually move stood still all day on {day}{some}: are they frozen?",
        arguments={"at_least_fixes": 10.0},
        is_of_few=True,
    ),
    "longest_gap_s": Measure(
        title="longest time without any fix",
        unit="s",
        breach="nothing came for {value} s of {day}: was the feed down?",
    ),
    "longest_gap_to_usual": Measure(
        title="longest time without any fix, of the usual one",
        unit="times",
        breach="the longest silence of {day} is {value} times that of {usual}: was the feed down?",
    ),
    "objects_with_gap_share": Measure(
        title="objects that were silent for longer than is usual for each",
        unit="share",
        breach="{percent} of the objects were silent for longer than usual on {day}{some}",
        arguments={"factor": 3.0, "at_least_s": 600.0},
    ),
    "freshness_s": Measure(
        title="from the last fix to the day's end",
        unit="s",
        breach="the last fix of {day} came {value} s before its end: did the feed stop?",
    ),
    "rejects_share": Measure(
        title="of the records that arrived, those that are no fix",
        unit="share",
        breach="{percent} of the records of {day} cannot be read{some}: was the format changed?",
    ),
    "late_share": Measure(
        title="fixes that were too late to change an answer",
        unit="share",
        breach="{percent} of the fixes of {day} came too late to change an answer",
    ),
    "double_share": Measure(
        title="fixes with the time of an earlier one of their object",
        unit="share",
        breach="{percent} of the fixes of {day} repeat a time of their object: was a part delivered twice?",
    ),
    "jumps_share": Measure(
        title="fixes that are too far from the one before for any speed allowed",
        unit="share",
        breach="{percent} of the fixes of {day} are too far from the one before{some}: wrong places, or shared ids?",
        arguments={"max_speed_mps": None},
    ),
    "jumping_objects_share": Measure(
        title="objects of which more than a part of the fixes are jumps: one id for two, as a rule",
        unit="share",
        breach="{percent} of the objects of {day} jump back and forth{some}: does one id stand for two?",
        arguments={"max_speed_mps": None, "at_most_share": 0.05},
    ),
    "rounded_share": Measure(
        title="fixes whose coordinates have no more than so many decimals",
        unit="share",
        breach="{percent} of the coordinates of {day} have fewer decimals than usual: were they rounded?",
        arguments={"decimals": None},
    ),
    "clock_off_objects_share": Measure(
        title="objects whose times are, by the median, further from the arrival than allowed",
        unit="share",
        breach="the times of {percent} of the objects of {day} differ from their arrival{some}: are clocks wrong?",
        arguments={"at_most_s": 300.0},
    ),
}
"""Measures of a stream as a whole, by name."""

COLUMN_MEASURES: dict[str, Measure] = {
    "outside_share": Measure(
        title="values outside of their range",
        unit="share",
        breach="{percent} of the values of {column} on {day} lie outside of their range",
    ),
    "unknown_share": Measure(
        title="values that are none of those known",
        unit="share",
        breach="{percent} of the values of {column} on {day} are none of those known",
    ),
    "null_share": Measure(
        title="fixes without a value",
        unit="share",
        breach="{percent} of the fixes of {day} have no {column}",
    ),
    "level_to_usual": Measure(
        title="mean value, of the usual one",
        unit="times",
        breach="{column} of {day} is {value} of {usual}: was a unit changed?",
    ),
    "spread_to_usual": Measure(
        title="standard deviation of the values, of the usual one",
        unit="times",
        breach="{column} of {day} spreads {value} times as widely as on {usual}: was a unit changed, or is it stuck?",
    ),
}
"""Measures of one attribute, or of x or y, by name; the outermost hundredths of a day's values count in no mean."""
