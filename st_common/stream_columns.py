"""The key `columns` of a stream: which columns of its records are the parts of a fix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from st_common.errors import ConfigError
from st_common.formats.format_settings import Column, parts
from st_common.regions.by_extent import Extent
from st_common.stream_keys import Owner, column_checks
from st_common.toml_values import checked

YOUNGER: Mapping[str, object] = {
    "object_value": None,
    "object_from": None,
    "age": None,
    "place": None,
    "attributes": {},
    "box": (),
    "shape": None,
}
"""The fields of `Columns` that are younger than many logs, as they are when nobody sets them."""

GEOMETRY = "geometry"
"""The attribute that holds the geometry of an element, as WKT."""
_PLACES = {"place", "box", "shape"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names that a format's records give to the parts of a fix.

    `event_ts` None: the segment's arrival is the time of its fixes. A record whose `gone` column holds one of
    `gone_values` says that its object has left; it needs no coordinates. Without a header a name is a column's
    number, counted from "1".

    Attributes:
        object: the column of ids. Of several an id is all their values with "/" between them: `18/640`. None where the
            records say none: then it is one of the next two.
        object_value: the id of all records.
        object_from: from what the id of a record follows: the `file name` that it came in, or its `source`. Whoever
            writes the log says it in front of the records (`said_before`).
        event_ts: the column of times. Of several it is all their texts with a blank between them.
        age: the column of the seconds by which a place is older than its `event_ts`.
        x: the column of x or longitude, or those that are one together, such as the number and its hemisphere; None
            where `place` has both.
        y: likewise.
        place: the column whose values are points: `POINT (24.9 60.1)`.
        box: the columns of the sides of a box, of one to four dimensions: the low and the high one of the first, of
            the second, .. (SPEC B7). They are the attributes lo1, hi1, ..; x and y are the middle of the first two.
        shape: the column whose values are geometries of any kind. They are the attribute `geometry`, as WKT; x and y
            are a point on them.
        gone: see above.
        gone_values: see above.
        attributes: the columns of those attributes that are not called as their columns.
    """

    object: Column
    object_value: str | None = None
    object_from: str | None = None
    event_ts: Column | None = None
    age: str | None = None
    x: Column | None = None
    y: Column | None = None
    place: str | None = None
    box: tuple[str, ...] = ()
    shape: str | None = None
    gone: str | None = None
    gone_values: tuple[str, ...] = ("true", "1")
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def of_attribute(self, name: str) -> str:
        """The column that holds an attribute."""
        return self.attributes.get(name, name)

    @property
    def extent(self) -> Extent:
        """What the elements are; of a box the first two dimensions lie where x and y do."""
        if self.shape is not None:
            return "shape"
        return ("box" if len(self.box) > 2 else "interval") if self.box else ""

    @property
    def dimensions(self) -> int:
        """How many dimensions the elements have: those of their boxes, from 1 to 4; points and geometries have 2."""
        return len(self.box) // 2 or 2

    @property
    def own_attributes(self) -> Mapping[str, Literal["double", "string"]]:
        """The attributes that follow from `box` and `shape`, which nobody declares."""
        own: dict[str, Literal["double", "string"]] = {}
        own |= dict.fromkeys(sides_of(len(self.box) // 2), "double")
        if self.shape is not None:
            own[GEOMETRY] = "string"
        return own


def sides_of(dimensions: int) -> list[str]:
    """The attributes of the sides of a box: lo1, hi1, lo2, hi2, .."""
    return [
        f"{side}{number + 1}" for number in range(dimensions) for side in ("lo", "hi")
    ]


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
    known = {} if _PLACES & set(values) else of_format
    if isinstance(owner := values.get("object"), Owner):
        values["object"] = ()
        values |= {"object_value": owner.value, "object_from": owner.origin}
    renamed = {name: values.pop(name) for name in attributes if _is_own(name, values)}
    sides = values.get("box", ())
    renamed |= dict(zip(sides_of(len(sides) // 2), sides, strict=True))
    if "shape" in values:
        renamed[GEOMETRY] = values["shape"]
    columns = Columns(**{**known, **values}, attributes=renamed)
    _check_place(columns, place)
    _check_own(columns, attributes, place)
    if columns.age is not None and columns.event_ts is None:
        raise ConfigError(
            f"{place} age without event_ts", hint="name the column of times by event_ts"
        )
    if columns.gone is None and "gone_values" in table:
        raise ConfigError(
            f"{place} gone_values without gone", hint="name the column by gone"
        )
    return columns


def _is_own(name: str, values: Mapping[str, Any]) -> bool:
    return name in values and name not in Columns.__dataclass_fields__


def _check_own(columns: Columns, attributes: Mapping[str, object], place: str) -> None:
    """What follows from box or shape is declared by nobody."""
    taken = {name.lower() for name in attributes} & set(columns.own_attributes)
    for name in sorted(taken):
        raise ConfigError(
            f"{place} {name} is an attribute by itself",
            hint="take it out of attributes",
        )


def _check_place(columns: Columns, place: str) -> None:
    """A fix has x and y, or a place, a box or a shape that has both."""
    whole = [name for name in sorted(_PLACES) if getattr(columns, name)]
    if len(whole) > 1:
        raise ConfigError(
            f"{place} {whole[0]} beside {whole[1]}", hint="give one of them"
        )
    if whole and (columns.x, columns.y) != (None, None):
        raise ConfigError(
            f"{place} x and y beside {whole[0]}, which holds both",
            hint="give one of them",
        )
    if whole:
        return
    for key, name in (("x", columns.x), ("y", columns.y)):
        if name is None:
            raise ConfigError(
                f"{place} {key} is missing",
                hint="x and y name two columns, or place one of points, shape of geometries, box the sides of boxes",
            )
    if set(parts(columns.x)) & set(parts(columns.y)):
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
        **{key: _named(value[key]) for key in ("x", "y") if value.get(key) is not None},
        "gone_values": tuple(value.get("gone_values", ())),
        "box": tuple(value.get("box", ())),
    }
    return Columns(**said)


def _named(value: Any) -> Column:
    column = tuple(value) if isinstance(value, list) else value
    if not all(isinstance(name, str) for name in parts(column)):
        raise ValueError(f"{value!r} is no column")
    return column
