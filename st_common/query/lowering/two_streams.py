"""A SELECT over two streams is one over their joint stream, in which every fix says of which it is (docs/adr/0036).

FROM cars c JOIN police p ON ST_DWithin(c, p, 1 km) WHERE p.state = 'free'

FROM "cars-and-police" c JOIN "cars-and-police" p ON ST_DWithin(c, p, 1 km)
WHERE p.state = 'free' AND c.stream_name = 'cars' AND p.stream_name = 'police'           is the same

FROM cars INSIDE ('M', 'police.7', 500 m)

FROM "cars-and-police" cars WHERE cars.stream_name = 'cars' INSIDE ('M', 'police/7', 500 m)      is the same
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.fix_columns import OBJECT_NAMES
from st_common.query.grammar.located import quoted_column
from st_common.query.grammar.nodes import (
    Exists,
    Inside,
    Knn,
    Refused,
    Rows,
    Source,
    span_of,
)
from st_common.query.group_names import Tables, found_table, split_name
from st_common.query.lowering.quantity import is_moving

NAME, OBJECT = "stream_name", "stream_object"
"""The attributes of a joint stream that say of which stream a fix is, and whose there."""
_BETWEEN = "-and-"


@dataclass(frozen=True, slots=True)
class TwoStreams:
    """The streams that a query is over, as they are called."""

    first: str
    second: str

    @property
    def joint(self) -> str:
        """The name of their joint stream, the same whichever comes first."""
        return _BETWEEN.join(sorted((self.first, self.second)))


def over_two(select: exp.Expr, areas: Areas) -> TwoStreams | None:
    """Makes a SELECT over two streams one over their joint stream, in place; None, nothing is done, for any other.

    Raises:
        Refused: it is over three.
    """
    source = select.args["from_"].this
    if isinstance(source, Rows):
        return over_two(source.this, areas)
    joins, focals = list(_joins(select)), list(_focals(select))
    if not joins and not any("." in each.name for each in focals):
        return None
    streams = areas.streams()
    own = found_table(source.name, _tables(areas))
    others = _others(own, joins, focals, areas) if own in streams else []
    if not others:
        return None
    (_, other), *_ = others
    third = next((pair for pair in others if pair[1] != other), None)
    if third is not None:
        _refuse_third(own, other, third)
    known = {
        name.casefold() for each in (own, other) for name in streams[each].attributes
    }
    _call_objects(select, {*OBJECT_NAMES, "object"} - known)
    two = TwoStreams(own, other)
    _ask(select, source, two.joint, own)
    named = {id(node) for node, _ in others}
    for join in joins:
        if id(join) in named:
            _ask(join if _is_apart(join) else select, join.this, two.joint, other)
    for focal in focals:
        _go_with(focal, own, other if id(focal) in named else None)
    return two


def _others(
    own: str, joins: list[exp.Expr], focals: list[exp.Expr], areas: Areas
) -> list[tuple[exp.Expr, str]]:
    """The joins and focal objects that are of another stream, each with that; a name that a layer has too is its."""
    streams, tables = areas.streams(), _tables(areas)
    others = []
    for join in joins:
        name = found_table(join.this.name, tables)
        if name in streams and name != own and name not in areas.layers():
            others.append((join, name))
    for focal in focals:
        before, dot, _ = focal.name.partition(".")
        name = found_table(before, tables)
        if dot and name in streams and name != own:
            others.append((focal, name))
    return others


def _tables(areas: Areas) -> Tables:
    streams = areas.streams()
    return Tables(
        what="stream", names=streams, group_of=lambda name: streams[name].group
    )


def _refuse_third(own: str, other: str, third: tuple[exp.Expr, str]) -> NoReturn:
    node, name = third
    message = (
        f"a query is over two streams, and this one is over {own}, {other} and {name}"
    )
    hint = f"CREATE STREAM x AS SELECT .. over {own} and {other}, then ask about x and {name}"
    raise Refused(message, span_of(node), hint)


def _joins(select: exp.Expr) -> Iterator[exp.Expr]:
    """What is joined that may be a stream, behind FROM and in EXISTS."""
    where = select.args.get("where")
    asked = [one.this for one in where.find_all(Exists)] if where is not None else []
    for join in [*(select.args.get("joins") or ()), *asked]:
        if not join.args.get("kind") and isinstance(join.this, Source):
            yield join


def _focals(select: exp.Expr) -> Iterator[exp.Expr]:
    """The ids of the objects that regions and neighbours go with."""
    for node in [*select.find_all(Inside, Knn, exp.Tuple)]:
        parts = node.expressions
        if not parts or not is_moving(parts):
            continue
        is_counted = isinstance(node, Knn) and node.this.name == "nearest"
        yield from parts[1 + is_counted : 2 + is_counted]


def _go_with(focal: exp.Expr, own: str, other: str | None) -> None:
    """Calls an object as it is called in the joint stream."""
    name = focal.name if other is None else focal.name.partition(".")[2]
    called = exp.Literal.string(f"{other or own}/{name}")
    called.meta.update(focal.meta)
    focal.replace(called)


def _is_apart(join: exp.Expr) -> bool:
    """Whether its conditions are said apart from those of the objects: in EXISTS, and in ON of LEFT JOIN."""
    return bool(join.args.get("side")) or isinstance(join.parent, Exists)


def _ask(clause: exp.Expr, table: exp.Expr, joint: str, stream: str) -> None:
    """Has a table mean the joint stream, and a clause ask for the fixes of one stream of it."""
    label = table.alias_or_name if table.alias else split_name(table.name)[1]
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(label, quoted=True)))
    name = exp.to_identifier(joint, quoted=True)
    name.meta.update(table.this.meta)
    table.set("this", name)
    column = quoted_column(NAME, table)
    column.set("table", exp.to_identifier(label, quoted=True))
    condition: exp.Expr = exp.EQ(this=column, expression=exp.Literal.string(stream))
    where = clause.args.get("where")
    on = clause.args.get("on")
    if on is not None:
        clause.set("on", exp.And(this=on, expression=condition))
    elif where is not None:
        where.set("this", exp.And(this=where.this, expression=condition))
    else:
        clause.set("where", exp.Where(this=condition))


def _call_objects(select: exp.Expr, names: set[str]) -> None:
    """Has `object` mean the id in its own stream; objects are counted as those of the joint one."""
    is_grouped = select.args.get("group") is not None
    for column in list(select.find_all(exp.Column)):
        called = column.name
        if called.casefold() not in names or isinstance(column.parent, exp.Count):
            continue
        above = column.parent
        is_shown = above is select or getattr(above, "parent", None) is select
        is_shown = is_shown and column.arg_key == "expressions" and not is_grouped
        name = exp.to_identifier(OBJECT)
        name.meta.update(column.this.meta)
        column.set("this", name)
        if is_shown:
            alias = exp.to_identifier(called)
            alias.meta.update(name.meta)
            column.replace(exp.Alias(this=column.copy(), alias=alias))
