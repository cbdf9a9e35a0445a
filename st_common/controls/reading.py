"""Control rows from bytes: the one reader. What it does not know is an error, whoever reads and whatever for.

A control segment is a row a line. Its rows are numbered from 0 on, and `position_of(segment, number)` is the place of
one in the log. Errors count rows from 1, as people do.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeVar

from st_common.controls.rectangles import Rectangles, rectangles_of
from st_common.controls.rows import (
    PLAN_FIELDS,
    PLAN_VERSIONS,
    Clock,
    ControlRow,
    Drop,
    End,
    Export,
    Fail,
    Follow,
    LayerVersion,
    Reading,
    Register,
    Replace,
)
from st_common.errors import LogError
from st_common.uncollected import uncollected

Kind = TypeVar("Kind")

_SHOWN = 60  # characters of a value in an error
_NEWER = "a newer version of Fairway wrote it: go on with that version"
_DAMAGED = "restore the segment from a copy"


def rows_of(payload: bytes, *, stream: str, segment: int) -> Sequence[ControlRow]:
    r"""The rows of a control segment, all of them and in their order; `Rectangles` where it has nothing else.

        b'{"op":"clock","ts":5}\n{"op":"end"}\n'   ->   (Clock(ts_us=5, delay_us=None), End())

    Args:
        payload: a JSON object a line; empty: no rows.
        stream: the name of the stream, for errors; may be empty.
        segment: the number of the segment, for errors.

    Raises:
        LogError: a row that is no JSON object, or has an op, a field or a version of a plan that this version does not
            know; one that lacks a part, or has one of another type.
    """
    columns = rectangles_of(payload)
    if columns is not None:
        return columns
    lines = _lines(payload)
    # A million rows stay and hold no cycles; the collector would look at them again and again.
    with uncollected():
        values = _values(lines)
        if values is None:
            _refuse_damaged(lines, stream, segment)
        return _typed(values, stream, segment)


def row_at(
    payload: bytes, number: int, *, stream: str, segment: int
) -> ControlRow | None:
    """One row of a control segment, without the cost of reading the others.

    Args:
        payload: as for `rows_of`.
        number: the row, counted from 0.
        stream: as for `rows_of`.
        segment: as for `rows_of`.

    Returns:
        None where the segment has no such row.

    Raises:
        LogError: this version does not know it; see `rows_of`.
    """
    lines = _lines(payload)[number : number + 1]
    values = _values(lines)
    if values is None:
        _refuse_damaged(lines, stream, segment, first=number)
    return next(iter(_typed(values, stream, segment, first=number)), None)


def chosen(rows: Sequence[ControlRow], kind: type[Kind]) -> Iterator[tuple[int, Kind]]:
    """The rows of a kind, each with its number among all rows of its segment, in order.

        (Clock(5), End(), Clock(7)), Clock   ->   (0, Clock(5)), (2, Clock(7))

    Args:
        rows: as `rows_of` gives them. `Rectangles`, which are registrations, are not gone through for another kind.
        kind: a class of rows. `AboutQuery` and `Registration` are kinds too: rows about a query, or that register one.
    """
    if isinstance(rows, Rectangles) and not issubclass(Register, kind):
        return
    for number, row in enumerate(rows):
        if isinstance(row, kind):
            yield number, row


def _lines(payload: bytes) -> list[bytes]:
    lines = payload.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _values(lines: list[bytes]) -> list[Any] | None:
    """The JSON values of the lines, read at once, which takes half the time; None when one of them is no value."""
    try:
        values: list[Any] = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        return None
    return values if len(values) == len(lines) else None


def _refuse_damaged(
    lines: list[bytes], stream: str, segment: int, *, first: int = 0
) -> NoReturn:
    for number, line in enumerate(lines, first):
        try:
            json.loads(line)
        except (ValueError, RecursionError) as error:
            what = f"it cannot be read: {str(error)[:_SHOWN]}"
            raise _error(stream, segment, number, what, _DAMAGED) from None
    raise _error(stream, segment, first, "lines and rows do not match", _DAMAGED)


def _typed(
    values: list[Any], stream: str, segment: int, *, first: int = 0
) -> tuple[ControlRow, ...]:
    number = first
    try:
        rows = []
        for number, value in enumerate(values, first):  # noqa: B007 - named in the error
            rows.append(_row(value))
    except _RefusedError as refused:
        raise _error(stream, segment, number, refused.what, refused.hint) from None
    return tuple(rows)


def _error(stream: str, segment: int, number: int, what: str, hint: str) -> LogError:
    of = f" of stream {stream}" if stream else ""
    return LogError(
        f"segment {segment}{of}: row {number + 1} is no control row: {what}", hint=hint
    )


class _RefusedError(Exception):
    """What is wrong with a row; whoever knows where it stands makes an error for people of it."""

    def __init__(self, what: str, hint: str) -> None:
        self.what, self.hint = what, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a kind stands in JSON: what makes it of its values, and the types of those that it must and may have."""

    make: Callable[[dict[str, Any]], ControlRow]
    must: tuple[tuple[str, type], ...]
    may: tuple[tuple[str, type], ...]
    names: frozenset[str]


def _form(
    make: Callable[[dict[str, Any]], ControlRow],
    must: Mapping[str, type],
    may: Mapping[str, type] | None = None,
) -> _Form:
    """The form of a kind; what it `may` have may be null as well."""
    allowed = may or {}
    names = frozenset({"op", *must, *allowed})
    return _Form(
        make=make,
        must=tuple(must.items()),
        may=tuple(allowed.items()),
        names=names,
    )


def _row(value: Any) -> ControlRow:
    if type(value) is not dict:
        raise _RefusedError(f"{_shown(value)} is no JSON object", _DAMAGED)
    op = value.get("op")
    form = _FORMS.get(op) if type(op) is str else None
    if form is None:
        raise _RefusedError(f"its op is {_shown(op)}, which is unknown", _NEWER)
    if not value.keys() <= form.names:
        unknown = min(value.keys() - form.names)
        what = f"{op!r} has a field {unknown!r}, which is unknown: {_shown(value[unknown])}"
        raise _RefusedError(what, _NEWER)
    get = value.get  # a million rows feel each look-up
    for name, kind in form.must:
        # The very type: to `isinstance` a bool is an int, and here it is none.
        if type(get(name)) is not kind:
            _refuse_part(value, name, kind)
    for name, kind in form.may:
        if (part := get(name)) is not None and type(part) is not kind:
            _refuse_part(value, name, kind)
    return form.make(value)


def _refuse_part(value: dict[str, Any], name: str, kind: type) -> NoReturn:
    said = f"is {_shown(value[name])}" if name in value else "is missing"
    what = f"the {name!r} of {value['op']!r} {said}; it must be {_WORDS[kind]}"
    raise _RefusedError(what, _DAMAGED)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _registration(
    kind: type[Register | Replace | Follow], value: dict[str, Any]
) -> Register | Replace | Follow:
    plan = value["plan"]
    version = plan.get("v")
    if type(version) is not int or version not in PLAN_VERSIONS:
        what = f"its plan has the version {_shown(version)}, which is unknown"
        raise _RefusedError(what, _NEWER)
    if not plan.keys() <= PLAN_FIELDS:
        unknown = min(plan.keys() - PLAN_FIELDS)
        what = f"its plan has a field {unknown!r}, which is unknown: {_shown(plan[unknown])}"
        raise _RefusedError(what, _NEWER)
    if type(plan.get("stream")) is not str:
        raise _RefusedError("its plan names no stream", _DAMAGED)
    return kind(
        query=value["query"],
        version=value["version"],
        plan=plan,
        text=value.get("text"),
        owner=value.get("owner"),
        layer_version=value.get("layer_version"),
        areas=_areas(value),
    )


def _areas(value: dict[str, Any]) -> tuple[str, ...]:
    areas = value.get("areas")
    if areas is None:
        return ()
    if not all(type(name) is str for name in areas):
        what = f"the 'areas' of {value['op']!r} is {_shown(areas)}; it must be names"
        raise _RefusedError(what, _DAMAGED)
    return tuple(areas)


def _register(value: dict[str, Any]) -> ControlRow:
    row, seed = _registration(Register, value), value.get("seed")
    return replace(row, seed=seed) if seed is not None else row


def _replace(value: dict[str, Any]) -> ControlRow:
    return _registration(Replace, value)


def _follow(value: dict[str, Any]) -> ControlRow:
    row, layer = _registration(Follow, value), value.get("layer")
    return replace(row, layer=layer) if layer is not None else row


def _drop(value: dict[str, Any]) -> Drop:
    return Drop(query=value["query"])


def _fail(value: dict[str, Any]) -> Fail:
    return Fail(query=value["query"], version=value["version"], why=value.get("why"))


def _layer(value: dict[str, Any]) -> LayerVersion:
    return LayerVersion(layer=value["layer"], version=value["version"])


def _clock(value: dict[str, Any]) -> Clock:
    return Clock(ts_us=value["ts"], delay_us=value.get("delay_us"))


def _reading(value: dict[str, Any]) -> Reading:
    return Reading(reading=value["reading"])


_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    dict: "a JSON object",
    list: "a list",
}
_QUERY = {"query": str, "version": int, "plan": dict}
_ASKED = {"text": str, "owner": str, "layer_version": int, "areas": list}
_FORMS: dict[str, _Form] = {
    Register.op: _form(_register, _QUERY, {**_ASKED, "seed": str}),
    Replace.op: _form(_replace, _QUERY, _ASKED),
    Follow.op: _form(_follow, _QUERY, {**_ASKED, "layer": str}),
    Drop.op: _form(_drop, {"query": str}),
    Fail.op: _form(_fail, {"query": str, "version": int}, {"why": str}),
    LayerVersion.op: _form(_layer, {"layer": str, "version": int}),
    Clock.op: _form(_clock, {"ts": int}, {"delay_us": int}),
    End.op: _form(lambda _: End(), {}),
    Export.op: _form(lambda _: Export(), {}),
    Reading.op: _form(_reading, {"reading": dict}),
}
