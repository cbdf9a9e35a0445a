"""What whoever loads a layer says of its file."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What a file does not say of itself.

    Attributes:
        table: which of the tables of a file, or of the files of an archive; None: it has one.
        ids: the column or property whose values are the fids; None: what the format has, else `#n`, the place in the
            file, from 1.
        crs: in which system coordinates are, where the file does not say it or says it wrong.
        columns: of a file of delimited text the columns that hold the place: `x` and `y`, or `place`.
        lat_lon: whether the file has the second coordinate first.
    """

    table: str | None = None
    ids: str | None = None
    crs: str | None = None
    lat_lon: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
