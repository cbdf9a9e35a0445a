"""Features that are not loaded as they stand in a file: which ones, where they are, and why."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Outcome = Literal["rejected", "repaired"]
REJECTED: Outcome = "rejected"
REPAIRED: Outcome = "repaired"
SHOWN = 10
"""So many of each outcome are named where nobody asks for all."""
_ALL = ": --all names them"
_MOST = 80  # characters of an id
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "bad_coordinates": "coordinates that are no two finite numbers",
        "bad_geometry": "a geometry that cannot be built",
        "bad_id": "no id, or one that is no text or number",
        "bad_json": "no JSON",
        "bad_line_end": "a carriage return inside of the line",
        "bad_location": "a node without a valid location",
        "bad_number": "a coordinate that is no number",
        "bad_order": "a place in its line that is no number",
        "bad_properties": "properties that are no object",
        "bad_utf8": "bytes that are no text in UTF-8",
        "crosses_180": "a side longer than 180 degrees: split the feature at the 180th meridian (RFC 7946)",
        "degenerate": "nothing is left of it, as of a ring without area",
        "duplicate_fid": "an earlier feature has this id",
        "empty_part": "an empty part or hole was left out",
        "hole_outside": "a hole outside of its area was left out",
        "made_valid": "its geometry was made valid, as where a ring crosses itself",
        "missing_nodes": "nodes of it are not in the file",
        "missing_column": "it lacks a column",
        "no_area": "no area can be built, as its rings are open or members are not in the file",
        "no_geometry": "no geometry that can be read",
        "not_a_feature": "no JSON object",
        "not_closed": "a way that could only be an area, and is not closed",
        "nul": "a byte 0 in the line",
        "other_crs": "its SRID is not that of the other features",
        "out_of_crs": "outside of its system of coordinates, as beyond 180 and 90 degrees",
        "ragged": "more or fewer fields than the header",
        "ring_not_closed": "a ring does not end where it begins",
        "too_few_points": "too few points for a line or a ring",
        "unbalanced_quote": "a quote that is not closed",
        "unreadable": "fields that cannot be told apart",
        "unknown_type": "a type of geometry that GeoJSON does not have",
    }
)
"""What each reason means, for people."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A feature that is not loaded as it stands in its file.

    Attributes:
        outcome: whether it was left out or mended.
        fid: its id; "" where it has none that can be used.
        where: its place in the file, such as `feature 3` or `line 7`; "" where its id says it.
        reason: a key of `WORDS`.
    """

    outcome: Outcome
    fid: str
    where: str
    reason: str

    @property
    def is_repaired(self) -> bool:
        """Whether it was mended, and is in the layer."""
        return self.outcome == REPAIRED


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """The faults by their places in the file; those without one at the end, as they come."""
    return tuple(sorted(faults, key=_number))


def _number(fault: Fault) -> float:
    _, _, number = fault.where.rpartition(" ")
    return int(number) if number else math.inf


def shared_out(
    faults: Iterable[Fault], *, most: int | None = SHOWN
) -> list[dict[str, str]]:
    """Faults for programs, as `layer show --json`, HTTP and the job have them: at most so many of each outcome."""
    by_outcome: dict[str, list[Fault]] = {REJECTED: [], REPAIRED: []}
    for one in faults:
        by_outcome[one.outcome].append(one)
    chosen = [one for those in by_outcome.values() for one in those[:most]]
    return [
        {
            "outcome": one.outcome,
            "fid": one.fid,
            "place": one.where,
            "reason": one.reason,
        }
        for one in chosen
    ]


def counted(faults: Iterable[Fault], outcome: Outcome) -> dict[str, int]:
    """How many features have an outcome, by reason, in the order of the reasons."""
    reasons = Counter(one.reason for one in faults if one.outcome == outcome)
    return dict(sorted(reasons.items()))


def features_of(faults: Iterable[Fault], outcome: Outcome) -> int:
    """How many features have an outcome; one that was mended in two ways counts once."""
    return len({(one.fid, one.where) for one in faults if one.outcome == outcome})


def told(
    faults: Sequence[Fault], *, most: int | None = SHOWN, more: str = _ALL
) -> list[str]:
    """A line for each fault, the rejected ones first; where there are more than `most` of an outcome, how many more.

        rejected feature 3, id 'open': ring_not_closed: a ring does not end where it begins

    Args:
        faults: in the order of the file.
        most: how many of each outcome are named; None: all.
        more: how the others can be named.
    """
    lines = []
    for outcome in (REJECTED, REPAIRED):
        those = [one for one in faults if one.outcome == outcome]
        lines += [_line(one) for one in those[:most]]
        if most is not None and len(those) > most:
            lines.append(f".. and {len(those) - most:,} more {outcome}{more}")
    return lines


def _line(fault: Fault) -> str:
    # An id such as #3 is the place that is said anyway.
    is_place = fault.where.endswith(f" {fault.fid.removeprefix('#')}")
    identity = "" if is_place or not fault.fid else f"id {shown(fault.fid)}"
    which = ", ".join(filter(None, (fault.where, identity))) or "a feature"
    reason = fault.reason
    return f"{fault.outcome} {which}: {reason}{': ' * (reason in WORDS)}{WORDS.get(reason, '')}"


def shown(text: str) -> str:
    """A text from a file on one line, in quotes, cut where it is long."""
    cut = text if len(text) <= _MOST else f"{text[:_MOST]}.."
    return repr(cut)
