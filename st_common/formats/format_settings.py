"""What a format may ask of the settings of a stream, and where it reads from."""

from collections.abc import Mapping
from typing import Protocol


class NamedColumns(Protocol):
    """The names that records give to the parts of a fix; None: they do not have it."""

    @property
    def object(self) -> str:
        """The column of ids."""
        ...

    @property
    def event_ts(self) -> str | None:
        """The column of times; None: the arrival is the time."""
        ...

    @property
    def x(self) -> str:
        """The column of longitudes, or of x."""
        ...

    @property
    def y(self) -> str:
        """The column of latitudes, or of y."""
        ...

    @property
    def gone(self) -> str | None:
        """The column that says that an object has left, if any."""
        ...


class FormatSettings(Protocol):
    """The settings of a stream that say how its records are taken apart."""

    @property
    def columns(self) -> NamedColumns:
        """The columns of a fix."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """Further columns by name, with their types."""
        ...

    @property
    def header(self) -> bool:
        """Whether the first line names the columns."""
        ...

    @property
    def delimiter(self) -> str:
        """What separates fields."""
        ...

    @property
    def quote(self) -> str:
        """What quotes fields; "" for none."""
        ...


class Source(Protocol):
    """Gives bytes, one portion after the other."""

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""
        ...
