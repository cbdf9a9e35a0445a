"""The key `columns` of a stream: which columns of its records are the parts of a fix."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from st_common.config.keys import Key, Place, key, keys_of, values_of
from st_common.config.values import WrongError, takes, words
from st_common.formats.format_settings import Column, parts
from st_common.regions.by_extent import Extent

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
_ORIGINS = (
    "file name",
    "source",
)  # what the object of records may follow from that say none
_SIDES = (2, 4, 6, 8)  # of boxes of one to four dimensions


@takes("the name or the number of a column", type=["string", "integer"])
def column(value: object) -> str:
    """The name of a column."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise WrongError("must be the name or the number of a column")
    return value


@takes("a column, or several in a list", type=["string", "integer", "array"])
def column_list(value: object) -> Column:
    """One column, or several in a list; a list of one is that one."""
    each = value if isinstance(value, list) else [value]
    names: tuple[str, ...] = tuple(column(name) for name in each)
    if not names or len(set(names)) < len(names):
        raise WrongError("must be columns, each once")
    return names if len(names) > 1 else names[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object of records that say none.

    Attributes:
        value: its id; None: it follows from where they come from.
        origin: from what: `file name`, without its ending, or `source`.
    """

    value: str | None = None
    origin: str | None = None


@takes(
    'a column, several in a list, `{ value = "ID" }`, or `{ from = "file name" }` or `"source"`',
    type=["string", "integer", "array", "object"],
)
def owner(value: object) -> Column | Owner:
    """The columns of ids, or whose records are that have none."""
    if not isinstance(value, dict):
        names: Column = column_list(value)
        return names
    if value.keys() == {"from"} and value["from"] in _ORIGINS:
        return Owner(origin=value["from"])
    text_ = value.get("value")
    if value.keys() != {"value"} or not isinstance(text_, str) or not text_.strip():
        raise WrongError(
            'must be { value = "ID" }, { from = "file name" } or { from = "source" }'
        )
    return Owner(value=text_.strip())


@takes(
    "the columns of 1 to 4 low and high sides, in a list",
    type="array",
    minItems=2,
    maxItems=8,
)
def box_sides(value: object) -> tuple[str, ...]:
    """The names of the columns of sides."""
    if not isinstance(value, list) or len(value) not in _SIDES:
        raise WrongError('must be columns of sides: ["lo1", "hi1", "lo2", "hi2"]')
    names = tuple(column(name) for name in value)
    if len(set(names)) < len(names):
        raise WrongError("must be columns, each once")
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names that a format's records give to the parts of a fix.

    Without a header a name is a column's number, counted from "1". A record that says that its object has left needs
    no coordinates.

    Attributes:
        object: the id of the object. Several columns are one id: ["oper", "veh"] gives 18/640. Of records that have
            none: { value = "phone" }, one id for all; { from = "file name" }, the name of the file without its ending;
            { from = "source" }, the name of the source.
        object_value: the id of all records.
        object_from: from what the id of a record follows: the `file name` that it came in, or its `source`. Whoever
            writes the log says it in front of the records (`said_before`).
        event_ts: the time of the fix. Several columns are one time: ["date", "time"]. Without it a record's time is
            its arrival, each record of a segment a microsecond after the one before.
        age: the column that says by how many seconds a place is older than event_ts: "seen_pos" beside "document.now".
        x: x, or longitude (east); several columns are one value together, such as the number and its hemisphere.
        y: y, or latitude (north); likewise.
        place: in place of x and y: a column of points as WKT or WKB.
        shape: in place of x and y: a column of lines, areas or points as WKT, WKB or GeoJSON; the attribute geometry
            holds them.
        box: in place of x and y: the columns of a box's sides, ["lo1", "hi1", "lo2", "hi2"], of 1 to 4 dimensions; they
            are the attributes lo1, hi1, ..
        gone: the column that says that an object has left.
        gone_values: the values by which it says so.
        attributes: the columns of those attributes that are not called as their columns.
    """

    object: Column = field(metadata=key(owner))
    object_value: str | None = None
    object_from: str | None = None
    event_ts: Column | None = field(default=None, metadata=key(column_list))
    age: str | None = field(default=None, metadata=key(column))
    x: Column | None = field(default=None, metadata=key(column_list))
    y: Column | None = field(default=None, metadata=key(column_list))
    place: str | None = field(default=None, metadata=key(column))
    box: tuple[str, ...] = field(default=(), metadata=key(box_sides))
    shape: str | None = field(default=None, metadata=key(column))
    gone: str | None = field(default=None, metadata=key(column))
    gone_values: tuple[str, ...] = field(default=("true", "1"), metadata=key(words))
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
    place: Place,
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
    keys = keys_of(Columns)
    own = {n: Key(n, column, "its column") for n in attributes if n not in keys}
    values = values_of({**own, **keys}, table, place)
    known = {} if _PLACES & set(values) else of_format
    if isinstance(said := values.get("object"), Owner):
        values["object"] = ()
        values |= {"object_value": said.value, "object_from": said.origin}
    renamed = {name: values.pop(name) for name in own if name in values}
    sides = values.get("box", ())
    renamed |= dict(zip(sides_of(len(sides) // 2), sides, strict=True))
    if "shape" in values:
        renamed[GEOMETRY] = values["shape"]
    columns = Columns(**{**known, **values}, attributes=renamed)
    _check_place(columns, place)
    _check_own(columns, attributes, place)
    if columns.age is not None and columns.event_ts is None:
        raise place.wrong(
            "age without event_ts",
            hint="name the column of times by event_ts",
        )
    if columns.gone is None and "gone_values" in table:
        raise place.wrong(
            "gone_values without gone",
            hint="name the column by gone",
        )
    return columns


def _check_own(
    columns: Columns, attributes: Mapping[str, object], place: Place
) -> None:
    """What follows from box or shape is declared by nobody."""
    taken = {name.lower() for name in attributes} & set(columns.own_attributes)
    for name in sorted(taken):
        hint = "take it out of attributes"
        raise place.wrong(f"{name} is an attribute by itself", hint=hint)


def _check_place(columns: Columns, place: Place) -> None:
    """A fix has x and y, or a place, a box or a shape that has both."""
    whole = [name for name in sorted(_PLACES) if getattr(columns, name)]
    if len(whole) > 1:
        raise place.wrong(f"{whole[0]} beside {whole[1]}", hint="give one of them")
    if whole and (columns.x, columns.y) != (None, None):
        said = f"x and y beside {whole[0]}, which holds both"
        raise place.wrong(said, at=whole[0], hint="give one of them")
    if whole:
        return
    for axis, name in (("x", columns.x), ("y", columns.y)):
        if name is None:
            raise place.wrong(
                f"{axis} is missing",
                hint="x and y name two columns, or place one of points, shape of geometries, box the sides of boxes",
            )
    if set(parts(columns.x)) & set(parts(columns.y)):
        raise place.wrong(f"x and y are both {columns.x!r}", at="y")


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
