"""What a format may ask of the settings of a stream, and where it reads from."""

from collections.abc import Iterator, Mapping
from typing import Protocol

Column = str | tuple[str, ...]
"""The name of a column, or the names of several that are one value together."""


def parts(column: Column | None) -> tuple[str, ...]:
    """The names of the columns that make a value; none for None."""
    if column is None:
        return ()
    return (column,) if isinstance(column, str) else column


class NamedColumns(Protocol):
    """The names that records give to the parts of a fix; None: they do not have it."""

    @property
    def object(self) -> Column:
        """The column of ids; of several the id is all of their values with "/" between them."""

    @property
    def event_ts(self) -> Column | None:
        """The column of times, or those of date and time; None: the arrival is the time."""

    @property
    def age(self) -> str | None:
        """The column that says how much older a place is than its time, if any."""

    @property
    def x(self) -> Column | None:
        """The column of longitudes, or of x, or several that are one; None: see `place`."""

    @property
    def y(self) -> Column | None:
        """The column of latitudes, or of y."""

    @property
    def place(self) -> str | None:
        """The column that holds both as one geometry, if any."""

    @property
    def box(self) -> tuple[str, ...]:
        """The columns of the sides of a box, if it has one."""

    @property
    def shape(self) -> str | None:
        """The column that holds a geometry of any kind, if any."""

    @property
    def gone(self) -> str | None:
        """The column that says that an object has left, if any."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """The columns of attributes that are not called as these, by the attribute."""


class FormatSettings(Protocol):
    """The settings of a stream that say how its records are taken apart."""

    @property
    def columns(self) -> NamedColumns:
        """The columns of a fix."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Further columns by name, with their types."""

    @property
    def filtering_columns(self) -> tuple[str, ...]:
        """Columns that say which records may be fixes at all."""

    @property
    def crs(self) -> str:
        """The system of x and y: "EPSG:" and a number, or "planar"."""

    @property
    def header(self) -> bool:
        """Whether the first line names the columns."""

    @property
    def delimiter(self) -> str:
        """What separates fields."""

    @property
    def quote(self) -> str:
        """What quotes fields; "" for none."""

    @property
    def encoding(self) -> str:
        """The encoding of texts, as Python calls it."""

    @property
    def records(self) -> str | None:
        """The key under which a document has its records, a list; None: they stand by themselves."""


class Source(Protocol):
    """Gives bytes, one portion after the other."""

    def read(self, size: int) -> bytes:
        """The next bytes, `size` at most; none at the end."""


def named_columns(stream: FormatSettings) -> Iterator[tuple[str, str]]:
    """The columns that a stream's settings name, each with the key that does; a column may be named by several keys.

    Those of attributes have the key `attribute NAME`.
    """
    columns = stream.columns
    for key in ("object", "event_ts", "x", "y", "age", "place", "gone"):
        yield from ((key, name) for name in parts(getattr(columns, key)))
    for attribute in stream.attributes:
        yield (
            f"attribute {attribute}",
            columns.attributes.get(attribute, attribute),
        )
    yield from (("where", name) for name in stream.filtering_columns)
