"""Changes of a backlog go into files where they are made, and the driver commits their names (docs/adr/0085).

A fix is of one shard, so what is told at its position is of that shard alone, and in order there. The exceptions are
known to whoever makes them: what a shard tells at a position that is no fix of its own, as of objects that fall silent
while others report, or of statements.

    position          40   41   42   43
    fix of shard      0    1    0    1
    shard 0 tells     A    -    B    C     C is foreign: 43 is shared, and both send their rows of it to the driver
    shard 1 tells     -    D    -    E
    files             A, B and D           the driver: C, E
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake.transaction import AddAction

from st_common.contracts import Contract
from st_common.operators.events.packet import Packet
from st_common.operators.state.codec import (
    from_blob,
    table_from_blob,
    table_to_blob,
    to_blob,
)
from st_common.operators.turn.changes import settled
from st_common.tables import fit
from st_common.tables.files import write_files

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """What a shard has made of a plan and not told yet.

    Attributes:
        plan: the number of the plan.
        changes: rows of `SHARD_SCHEMA`.
        own: int64, the positions of the shard's own fixes.
    """

    plan: int
    changes: pa.Table
    own: Ints

    @staticmethod
    def of(plan: int, changes: pa.Table, packets: Iterable[Packet]) -> "Untold":
        """What a step made of the packets of a shard that follows its own objects alone."""
        positions = [packet.positions() for packet in packets if not packet.controls]
        own = np.concatenate([np.empty(0, np.int64), *positions])
        return Untold(plan=plan, changes=changes, own=own)

    def foreign(self) -> Ints:
        """The positions at which something is told that are no fixes of its own; int64, ascending, each once."""
        return np.setdiff1d(self.changes["position"].to_numpy(), self.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of a shard's changes.

    Attributes:
        files: those that it wrote, which no commit names yet.
        rows: how many rows these hold.
        rest: the changes at shared positions, rows of `SHARD_SCHEMA`.
    """

    files: Sequence[AddAction]
    rows: int
    rest: pa.Table

    def to_blob(self) -> bytes:
        """As bytes; `from_blob` gives it back."""
        meta = {"files": [asdict(file) for file in self.files], "rows": self.rows}
        rest = table_to_blob(self.rest.unify_dictionaries())
        return to_blob({"rest": pa.array([rest], pa.binary())}, meta)

    @staticmethod
    def from_blob(blob: bytes) -> "Told":
        """What `to_blob` was given."""
        arrays, meta = from_blob(blob)
        return Told(
            files=[AddAction(**file) for file in meta["files"]],
            rows=meta["rows"],
            rest=table_from_blob(arrays["rest"][0].as_buffer()),
        )


def tell_by_files(
    untold: Untold, shared: Ints, *, table: Path, contract: Contract, committed: int
) -> Told:
    """Writes what a shard has to tell into files of the table `changes`, but for what stands at shared positions.

    Args:
        untold: what it has to tell.
        shared: int64, ascending: positions at which others may tell something, too.
        table: the folder of the table.
        contract: of the table.
        committed: the last position that the table has: what is up to there is told already.
    """
    position = untold.changes["position"].to_numpy()
    is_shared = np.isin(position, shared)
    mine = untold.changes.filter(pa.array(~is_shared & (position > committed)))
    files = write_files(table, fit(settled([mine]), contract), contract)
    rest = untold.changes.filter(pa.array(is_shared))
    return Told(files=files, rows=len(mine), rest=rest)
