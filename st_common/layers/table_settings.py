"""How a table is declared: its key, its columns, and how long old rows stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from st_common.errors import LayerError

_RESERVED = frozenset({"fid", "geometry"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """How a table was declared.

    Attributes:
        key: the column whose value is the id of a row.
        columns: all of them, the key too; each is a text, and a tag of the feature.
        versions: so many rows of a key `maintain` leaves, the newest ones.
        ttl_s: rows that were put longer ago go when `maintain` comes by, the newest of a key too; None: they stay.
        group: by whose regions it is spread.
    """

    key: str
    columns: Sequence[str]
    versions: int = 1
    ttl_s: float | None = None
    group: str = "default"

    def check(self) -> None:
        """Raises a LayerError where it makes no sense, with what to do."""
        names = [name.casefold() for name in self.columns]
        for name, folded in zip(self.columns, names, strict=True):
            if names.count(folded) > 1:
                raise LayerError(f"column {name!r} stands twice")
            if folded in _RESERVED:
                hint = "every row has one by itself: its key, or its place"
                raise LayerError(f"no column can be called {name!r}", hint=hint)
        if self.versions < 1:
            raise LayerError(
                f"versions = {self.versions} keeps nothing", hint="1 or more"
            )

    @property
    def ttl(self) -> timedelta | None:
        """How long a row stays after it was put; None: for ever."""
        return None if self.ttl_s is None else timedelta(seconds=self.ttl_s)
