"""What a format of records answers.

Nothing here imports NumPy, so that reading settings stays quick: methods import what they need when they are called.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format_settings import FormatSettings, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records
    from st_common.formats.said_before import Said
    from st_common.formats.spans import Ints

FORMAT_KEYS = (
    "header",
    "delimiter",
    "quote",
    "records",
    "skip_lines",
    "time_unit",
    "time_zone",
    "encoding",
    "decimal",
    "coordinates",
    "place_order",
)
"""The keys of a stream that some formats have no use for."""


class Format(ABC):
    """One format of records. Payloads are those of segments, unpacked."""

    takes: frozenset[str] = frozenset()
    """Those of FORMAT_KEYS that it has a use for; the others are refused."""

    crs: str | None = None
    """The system that its coordinates are in whoever writes it; another one is refused. None: it depends."""

    defaults: Mapping[str, str] = {}
    """Values of keys that are not set, where they differ from those of `StreamSettings`."""

    is_lines = True
    """Whether each record is a line, so that lines of a feed can be stored as they come."""

    columns: Mapping[str, str] = {}
    """The columns of a fix whose names the format knows itself: settings need not say them."""

    is_local = False
    """Whether its times are what a clock on the spot showed, without a zone."""

    known: Mapping[str, str] = {}
    """The columns that records have whatever the file, with types and units as settings declare attributes of them."""

    offers: Mapping[str, str] = {}
    """Attributes worth keeping, with types and units as settings declare them, of columns whose names are fixed."""

    written_as: str | None = None
    """How rows of columns are written in it: `objects` of JSON, `delimited` by a character; None: they are not."""

    is_arrow = False
    """Whether its payloads are streams of Arrow, as are rows that were posted to streams of other formats."""

    remembers = False
    """Whether a record may need what was said in payloads before; then `said` says what a payload leaves to others."""

    drops_null_island = False
    """Whether 0, 0 was no place in it before streams had a setting for that: so logs of then are read."""

    takes_objects = False
    """Whether a record is a JSON object, as those are that a query feeds into a stream."""

    def attribute(self, name: str) -> tuple[str, str] | None:
        """A column that records have, whatever the file, and its type with its unit; None where nobody knows it.

        Args:
            name: in any case.
        """
        columns = {**self.offers, **self.known}
        called = {column.casefold(): column for column in columns}
        column = called.get(name.casefold())
        return None if column is None else (column, columns[column])

    @abstractmethod
    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Cuts a source into chunks of about `size` bytes with whole records; it is never held as a whole.

        Raises:
            ConfigError: the source is not of this format, so that no records can be told in it.
        """

    def check_whole(self, source: Source) -> None:
        """Reads a source to its end where a fault in one place spoils all that follows; else there is nothing to see.

        Raises:
            ConfigError: it has such a fault; the message says where.
        """
        return

    @abstractmethod
    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The records of a payload; total: whatever the bytes are, it raises nothing, and leaves nothing out."""

    def said(self, payload: bytes, stream: FormatSettings) -> "Said | None":
        """What payloads behind this one need of it, where the format `remembers`; else None.

        Args:
            payload: as it came, with what was not finished before in front (`said_before`).
            stream: the settings.
        """
        return None

    def made_at(self, payload: bytes, stream: FormatSettings) -> "pa.Array | None":
        """When each record of a payload was made, also of those that are no fixes, where the format `remembers`.

        So what was said keeps its place among fixes when a file is sorted. None: only fixes say it.

        Returns:
            Texts in the stream's unit of time, or timestamps (us); null where a record does not say it.
        """
        return None

    def record_count(self, payload: bytes) -> int:
        """How many records some lines hold, of a format of lines: as many as `records` finds."""
        import numpy as np

        from st_common.formats.spans import lines

        return len(lines(np.frombuffer(payload, np.uint8)))

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """What of a stream's settings cannot be with this format, and a hint; None when all can."""
        return None

    def is_header(self, line: bytes, stream: FormatSettings) -> bool:
        """Whether a first line names columns of the settings, where a format has such a line."""
        return True

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """What is likely to mend a file whose first bytes are `head`, mostly rejected for `reason`."""
        return None

    def whole_bytes(self, payload: bytes) -> int:
        """How many bytes hold whole records, of a payload whose rest is lost: up to the last line end."""
        return payload.rfind(b"\n") + 1

    line_end = b"\n"
    """What a payload must end with, so that another one may stand behind it."""

    small_bytes = 1 << 14
    """Payloads up to so large are decoded together; a larger one is worth a call of its own."""

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """The header of a payload that may be put behind others with the same one, b"" where there are none.

        None: it must be read by itself. Else every line behind the header is a record, as `joined_records` has them,
        unless `joined_starts` says otherwise.
        """
        return None

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """As `records`, when every line is one record; None where that is in doubt, or where nothing may be joined."""
        return None

    def joined_starts(self, bodies: bytes, ends: "Ints") -> "Ints | None":
        """Where each record of joined payloads starts; None where one payload may reach into the next.

        Args:
            bodies: the payloads behind the header that they share.
            ends: where each of them ends.
        """
        import numpy as np

        from st_common.formats.spans import lines

        return lines(np.frombuffer(bodies, np.uint8)).starts


def some_of(columns: Mapping[str, str], *names: str) -> Mapping[str, str]:
    """Some columns with their types, in this order."""
    return MappingProxyType({name: columns[name] for name in names})
