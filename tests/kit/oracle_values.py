"""What is told beside an answer: the values of aggregates, and until when a member stays inside."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from st_common.query.plan import Aggregate
from st_common.reference import aggregate as reference
from st_common.reference.columns import objects
from st_common.reference.staying import stays_for
from st_common.regions.registry import MovingBox, MovingCircle, Region
from tests.kit.oracle_members import fixes_of, metric_of
from tests.kit.oracle_readings import Known, Reading
from tests.kit.oracle_rows import Rules

Counted = tuple[Reading, str | None]
"""A member or an entry of a window, with its partner."""


def groups(
    aggregate: Aggregate,
    counted: Sequence[Counted],
    rules: Rules,
    of_ways: Mapping[str, Mapping[str, float | None]] = MappingProxyType({}),
) -> dict[str, reference.Shown]:
    """The value of every group that has one, by the text of the group; `*` without groups, None for DISTINCT.

    `of_ways` are by function what it says of each object, where one of several values is of ways.
    """
    fixes = fixes_of([reading for reading, _ in counted], rules)
    partners = objects([partner for _, partner in counted])
    return reference.groups(aggregate, fixes, fixes.rows, partners, of_ways=of_ways)


def groups_of(
    aggregate: Aggregate, counted: Sequence[Counted], rules: Rules
) -> list[str]:
    """The groups that members or entries are in, one for each."""
    fixes = fixes_of([reading for reading, _ in counted], rules)
    partners = objects([partner for _, partner in counted])
    return reference.group_names(aggregate, fixes, fixes.rows, partners)


def stays_until(
    region: Region, reading: Reading, known: Known, at_us: int, rules: Rules
) -> float | None:
    """The second until which an object stays inside when it and the focal object keep their last velocities.

    Both set off at `at_us` from where they were read last. None: a velocity is unknown; inf: it stays for ever.
    """
    other = None
    if isinstance(region, MovingBox | MovingCircle):
        other = known.alive[region.focal]
    if reading.velocity is None or (other is not None and other.velocity is None):
        return None
    focal = (other.at, other.velocity) if other and other.velocity else None
    metric = metric_of(rules)
    left_s = stays_for(region, reading.at, reading.velocity, focal, metric)
    return at_us / 1e6 + left_s
