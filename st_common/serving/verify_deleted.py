"""Verify after old days of `changes` or `positions` were deleted: what can still be checked, and what cannot.

changes of days      1    2    3 | 4    5    6        1 to 3 were deleted
member since day 2   +           |                    nobody knows: not checked
member since day 5               |      +             checked, and who left in vain
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.home import Home
from st_common.levels.snapshots import members_of, snapshots

_FOLDED = [
    "query",
    "query_version",
    "object",
    "partner",
    "position",
    "seq",
    "sign",
]
_DAY_US = 86_400_000_000
_END = 1 << 62  # after all rows, and all times


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is left of `changes` after rows were deleted: from which row of the log, and from which day on."""

    position: int
    day_us: int

    def has(self, position: int, event_us: int) -> bool:
        """Whether a change of this row and time would still be there."""
        return position >= self.position and event_us >= self.day_us


def kept_of(home: Home, stream: str, changes: pd.DataFrame) -> Kept | None:
    """What is left of the changes of a stream; None where none were ever deleted."""
    if not tables.has_deletions(home.table("changes", stream)):
        return None
    if not len(changes):
        return Kept(position=_END, day_us=_END)
    event_us = changes["event_ts"].dt.as_unit("us").astype(np.int64)
    day_us = int(event_us.min()) // _DAY_US * _DAY_US
    return Kept(position=int(changes["position"].min()), day_us=day_us)


def from_kept(home: Home, stream: str, changes: pa.Table) -> pa.Table:
    """The changes of a stream, with all who were in where they begin: where some were purged a snapshot says who.

    Args:
        home: where the tables lie.
        stream: the stream.
        changes: all that its table holds.

    Returns:
        Rows with the columns that name a member, and position, seq and sign; as they are where none were purged.
    """
    purged = tables.purged_before(home.table("changes", stream))
    if not purged:
        return changes
    taken = snapshots(home, stream)
    base = next((each for each in taken if each.position == purged), None)
    members = members_of(home, stream, base)
    at_first = {"seq": pa.scalar(0, pa.int32()), "sign": pa.scalar(1, pa.int8())}
    for name, value in at_first.items():
        members = members.append_column(name, pa.repeat(value, len(members)))
    kept = changes.filter(pc.greater_equal(changes["position"], purged))
    parts = [members.select(_FOLDED), kept.select(_FOLDED)]
    return pa.concat_tables(parts, promote_options="permissive")


def untold(
    expected: Collection[tuple[Hashable, ...]],
    before: Collection[tuple[Hashable, ...]] | None,
    told: pd.DataFrame,
    *,
    by: int,
) -> int:
    """How many members, or groups with their value, no change that is left speaks of; `by` parts name each.

    Those that were not there `before` (None: all may have been) must have been told of since.
    """
    columns = ["object", "partner"][:by]
    known = set(told[columns].itertuples(index=False, name=None))
    rest = [one for one in expected if before is None or one in before]
    return sum(one[:by] not in known for one in rest)


def in_words(count: int, what: str) -> str:
    """What could not be checked; nothing of none."""
    if not count:
        return ""
    ending = "s" if count > 1 else ""
    return f"{count} {what}{ending} of days of which the changes were deleted"
