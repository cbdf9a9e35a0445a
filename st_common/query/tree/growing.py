"""From what is said of a query to the tree of its operators, in the order in which they stand above each other."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.query.binding import Columns, columns_of
from st_common.query.outer import columns_below, typed_columns
from st_common.query.plan import Outer, Plan
from st_common.query.tree.boxes import Compared, Transformed
from st_common.query.tree.detected import Detected
from st_common.query.tree.fusing import parts_of
from st_common.query.tree.holding import Holding
from st_common.query.tree.node import Above, Column, Node, walk
from st_common.query.tree.relational import Group, Project, Select, Source, Told
from st_common.query.tree.rows import Lasting, Rows, Settled
from st_common.query.tree.spatial import Inside, Near, Until, WithLayer, WithObjects
from st_common.query.tree.windows import Counting, Recent, Travelled

_WHO = (
    Inside,
    Transformed,
    Compared,
    WithLayer,
    WithObjects,
    Detected,
    Holding,
    Near,
)
"""Operators about where objects are now, from the bottom up; where a join gives pairs the nearest are below it."""
_ANSWER = (Recent, Group, Project, Until)
"""What becomes of the members of an answer, from the bottom up."""
OF_FIXES = frozenset(
    kind.at for kind in (*_WHO, *_ANSWER, Travelled) if kind.of_fixes
) - {"emit"} | {"options", "until"}
"""Clauses that ask for what fixes alone have, and those that say more about them."""
_UNITS = {
    "elapsed_s": "s",
    "speed_mps": "m/s",
    "heading_deg": "degrees",
    "acceleration_mps2": "m/s2",
}
_NEVER_NULL = frozenset({"object", "event_ts", "x", "y"})


def tree_of(plan: Plan, stream: StreamSettings | None = None) -> Told:
    """The operators of a plan; with the settings of its stream the columns of its rows are known."""
    said = {part.name: getattr(plan, part.name) for part in fields(Plan)}
    source = Source(stream=plan.stream, fix_columns=_fix_columns(stream))
    if plan.outer is None:
        return grown(source, said)
    # Of rows that another query asks about it says what is told.
    below = grown(source, {**said, "emit": "changes"})
    rows = Rows(input=below, row_columns=_row_columns(plan, stream))
    above = {part.name: getattr(plan.outer, part.name) for part in fields(Outer)}
    return above_rows(rows, {**above, "emit": plan.emit})


def _row_columns(plan: Plan, stream: StreamSettings | None) -> tuple[Column, ...]:
    """The columns of a plan's rows; none where the stream is not known."""
    if stream is None:
        return ()
    return columns_of_rows(plan, columns_below(plan, stream.attributes))


def grown(source: Source, said: Mapping[str, Any]) -> Told:
    """The operators above a source that say these parts of a plan; what is not among them is not said."""
    rows = _stacked((Travelled, Select), source, said, source)
    rows = _of_who(rows, said, source)
    told = _stacked(_ANSWER, rows, said, source)
    return Told(
        input=told, emit=said.get("emit", "changes"), order=said.get("order", "auto")
    )


def changed(tree: Told, said: Mapping[str, Any]) -> Told:
    """The tree that says these parts anew, and all others as before.

    Raises:
        QueryError: the tree is about the rows of a query, and a part about fixes.
    """
    parts = {**parts_of(tree), **said}
    first = next(walk(tree))
    if isinstance(first, Rows):
        return _changed_above(first, parts, said)
    assert isinstance(first, Source)  # noqa: S101 - a query is above fixes, or rows
    return grown(first, parts)


def _fix_columns(stream: StreamSettings | None) -> tuple[Column, ...]:
    """The columns of every fix; none where the stream is not known."""
    if stream is None:
        return ()
    units = {**stream.units, **_UNITS}
    return tuple(
        Column(
            name=name,
            type=type_,
            unit=units.get(name, ""),
            nullable=name not in _NEVER_NULL,
        )
        for name, type_ in columns_of(stream.attributes)
    )


def above_rows(rows: Rows, said: Mapping[str, Any]) -> Told:
    """The operators above the rows of a query that say these parts of an outer one, and what of it is told."""
    asked = _stacked((Select, Settled, Lasting, Group), rows, said, rows)
    return Told(input=asked, emit=said.get("emit", "changes"))


def _changed_above(rows: Rows, said: Mapping[str, Any], new: Mapping[str, Any]) -> Told:
    known = {part.name for part in fields(Outer)} | {"emit"}
    for part in sorted(new.keys() - known):
        message = f"the part {part!r} is about fixes, and not about the rows of a query"
        raise QueryError(message, hint="say it of the query whose rows these are")
    return above_rows(rows, said)


def columns_of_rows(plan: Plan, fixes: Columns) -> tuple[Column, ...]:
    """The columns of the rows of a plan, for whoever stands above them."""
    return tuple(
        Column(name=name, type=type_, nullable=name != "object")
        for name, type_ in typed_columns(plan, fixes)
    )


def _of_who(rows: Node, said: Mapping[str, Any], source: Source) -> Node:
    """What is said of places: of objects it is about the rows; of fixes in windows, about which objects count now."""
    joined = said.get("join") or said.get("pairs")
    kinds: Sequence[type[Above]] = _WHO
    if joined is not None and not joined.chooses:
        # The nearest of a place are joined: pairs have no place of their own.
        first = _WHO.index(WithLayer)
        kinds = (*_WHO[:first], Near, *_WHO[first:-1])
    if said.get("frame") is None:
        return _stacked(kinds, rows, said, source)
    who = _stacked(kinds, source, said, source)
    return rows if who is source else Counting(input=rows, who=who)


def _stacked(
    kinds: Sequence[type[Above]], rows: Node, said: Mapping[str, Any], source: Node
) -> Node:
    """Those of the operators that are said above each other, and all above the rows."""
    for kind in (kind for kind in kinds if _is_said(kind, said)):
        rows = kind.above(rows, said, source)
    return rows


def _is_said(kind: type[Node], said: Mapping[str, Any]) -> bool:
    """Whether parts of a plan that belong to an operator are not as they are without it."""
    values = (said.get(part) for part in kind.parts)
    return any(
        value is not None and value is not False and value != () for value in values
    )
