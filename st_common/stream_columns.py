"""The key `columns` of a stream: which columns of its records are the parts of a fix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from st_common.errors import ConfigError
from st_common.formats.format_settings import Column, parts
from st_common.stream_keys import column_checks
from st_common.toml_values import checked

YOUNGER: Mapping[str, object] = {"place": None, "attributes": {}}
"""The fields of `Columns` that are younger than many logs, as they are when nobody sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names that a format's records give to the parts of a fix.

    `event_ts` None: the segment's arrival is the time of its fixes. A record whose `gone` column holds one of
    `gone_values` says that its object has left; it needs no coordinates. Without a header a name is a column's
    number, counted from "1".

    Attributes:
        object: the column of ids. Of several an id is all their values with "/" between them: `18/640`.
        event_ts: the column of times. Of several it is all their texts with a blank between them.
        x: the column of x or longitude; None where `place` has both.
        y: likewise.
        place: the column whose values are points: `POINT (24.9 60.1)`.
        gone: see above.
        gone_values: see above.
        attributes: the columns of those attributes that are not called as their columns.
    """

    object: Column
    event_ts: Column | None = None
    x: str | None = None
    y: str | None = None
    place: str | None = None
    gone: str | None = None
    gone_values: tuple[str, ...] = ("true", "1")
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def of_attribute(self, name: str) -> str:
        """The column that holds an attribute."""
        return self.attributes.get(name, name)


def columns_of_table(
    table: Mapping[str, Any],
    *,
    attributes: Mapping[str, object],
    of_format: Mapping[str, str],
    place: str,
) -> Columns:
    """The columns that a table of settings names.

    Args:
        table: its keys and values: parts of a fix, and attributes whose columns have other names.
        attributes: those that the stream declares.
        of_format: the columns that its format knows itself.
        place: where the table stands, for errors.

    Raises:
        ConfigError: a key is unknown, missing or wrong, or two of them cannot stand beside each other.
    """
    values = checked(table, column_checks(attributes), Columns, place)
    known = {} if "place" in values else of_format
    renamed = {name: values.pop(name) for name in attributes if _is_own(name, values)}
    columns = Columns(**{**known, **values}, attributes=renamed)
    _check_place(columns, place)
    if columns.gone is None and "gone_values" in table:
        raise ConfigError(
            f"{place} gone_values without gone", hint="name the column by gone"
        )
    return columns


def _is_own(name: str, values: Mapping[str, Any]) -> bool:
    return name in values and name not in Columns.__dataclass_fields__


def _check_place(columns: Columns, place: str) -> None:
    """A fix has x and y, or a place that has both."""
    if columns.place is not None and (columns.x, columns.y) != (None, None):
        raise ConfigError(
            f"{place} x and y beside place, which holds both", hint="give one of them"
        )
    if columns.place is not None:
        return
    for key, name in (("x", columns.x), ("y", columns.y)):
        if name is None:
            raise ConfigError(
                f"{place} {key} is missing",
                hint="x and y name two columns, or place one of points",
            )
    if columns.x == columns.y:
        raise ConfigError(f"{place} x and y are both {columns.x!r}")


def columns_of_json(value: Mapping[str, Any]) -> Columns:
    """The columns that JSON says, as `dataclasses.asdict` and `json.dumps` give it.

    Raises:
        KeyError, TypeError, ValueError: it is of another form.
    """
    event_ts = value.get("event_ts")
    said = {
        **value,
        "object": _named(value["object"]),
        "event_ts": None if event_ts is None else _named(event_ts),
        "gone_values": tuple(value.get("gone_values", ())),
    }
    return Columns(**said)


def _named(value: Any) -> Column:
    column = tuple(value) if isinstance(value, list) else value
    if not all(isinstance(name, str) for name in parts(column)):
        raise ValueError(f"{value!r} is no column")
    return column
