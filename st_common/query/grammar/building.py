"""The rules of statements and clauses as nodes.

A method is called as its rule, and is given all that stands in it, words and signs as well.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from st_common.query.grammar.building_expressions import BuildingExpressions
from st_common.query.grammar.building_places import BuildingPlaces
from st_common.query.grammar.located import at, identifier, text_literal, word
from st_common.query.grammar.nodes import (
    FIRST,
    TWICE,
    Ask,
    AskedPast,
    Comparing,
    CreateArea,
    CreateStream,
    CreateTable,
    Detect,
    Detected,
    DropArea,
    DropStream,
    DropTable,
    Emit,
    Explain,
    From,
    Greatest,
    Holding,
    Inside,
    Knn,
    Lasting,
    Options,
    Quantity,
    Refused,
    Register,
    Rows,
    Show,
    Source,
    Step,
    TableColumn,
    Unregister,
    Until,
    Using,
)
from st_common.query.grammar.tokens import Token
from st_common.query.group_names import split_name

Parts = Sequence[Any]
_NEAREST = {
    "KNN": "nearest",
    "GPAC_KNN": "nearest",
    "REVERSE_KNN": "reverse",
    "GROUP_KNN": "group",
}


class _Clause(NamedTuple):
    """A clause behind a SELECT: what it is called there, its node, and its first word."""

    key: str
    node: exp.Expr
    first: Token


class _Selection(NamedTuple):
    """What stands behind SELECT: its items, and the words DISTINCT and ISTREAM, DSTREAM or RSTREAM."""

    items: exp.Tuple
    distinct: bool
    told: exp.Expr | None = None


class Building(BuildingExpressions, BuildingPlaces):
    """The nodes of statements and clauses."""

    # statements

    def text(self, parts: Parts) -> list[exp.Expr]:
        return _nodes(parts)

    def register(self, parts: Parts) -> exp.Expr:
        is_beginning = isinstance(parts[-1], From)
        name, _, select = parts[-4:-1] if is_beginning else parts[-3:]
        return Register(
            this=name,
            expression=select,
            replace=False,
            beginning=parts[-1] if is_beginning else None,
            conditional=_is_conditional(parts),
        )

    def beginning(self, parts: Parts) -> exp.Expr:
        is_time = parts[1].type == "STRING"
        time = text_literal(parts[1]) if is_time else None
        return at(From(this=time), parts[0], parts[1])

    def replace(self, parts: Parts) -> exp.Expr:
        _, _, name, _, select = parts
        return Register(this=name, expression=select, replace=True)

    def drop(self, parts: Parts) -> exp.Expr:
        return Unregister(this=parts[-1], conditional=_is_conditional(parts))

    def create_stream(self, parts: Parts) -> exp.Expr:
        name, _, select = parts[-3:]
        return CreateStream(
            this=name, expression=select, conditional=_is_conditional(parts)
        )

    def drop_stream(self, parts: Parts) -> exp.Expr:
        return DropStream(this=parts[-1], conditional=_is_conditional(parts))

    def create_area(self, parts: Parts) -> exp.Expr:
        name, _, region = parts[-3:]
        replaces = parts[1].type == "OR"
        return CreateArea(
            this=name,
            expression=region,
            replaces=replaces,
            conditional=_is_conditional(parts),
        )

    def drop_area(self, parts: Parts) -> exp.Expr:
        return DropArea(this=parts[-1], conditional=_is_conditional(parts))

    def create_table(self, parts: Parts) -> exp.Expr:
        name = parts[3] if _is_conditional(parts) else parts[2]
        options = [part.node for part in parts if type(part) is _Clause]
        return CreateTable(
            this=name,
            expressions=[part for part in parts if isinstance(part, TableColumn)],
            options=options[0] if options else None,
            conditional=_is_conditional(parts),
        )

    def table_column(self, parts: Parts) -> exp.Expr:
        name, *others = parts
        kinds = [word(part) for part in others if part.type == "TYPE"]
        made = TableColumn(
            this=name,
            kind=exp.Var(this=kinds[0]) if kinds else None,
            key=any(part.type == "PRIMARY_KEY" for part in others),
        )
        return at(made, name, parts[-1])

    def drop_table(self, parts: Parts) -> exp.Expr:
        return DropTable(this=parts[-1], conditional=_is_conditional(parts))

    def show(self, parts: Parts) -> exp.Expr:
        return Show(this=word(parts[-1]))

    def explain(self, parts: Parts) -> exp.Expr:
        what = parts[-1]
        analyze = len(parts) == 3
        if isinstance(what, exp.Select):
            return Explain(expression=what, analyze=analyze)
        return Explain(this=what, analyze=analyze)

    def explained(self, parts: Parts) -> exp.Expr:
        return Explain(expression=parts[0])

    def asked(self, parts: Parts) -> exp.Expr:
        select, *past = parts
        return Ask(expression=select, past=past[0] if past else None)

    def past(self, parts: Parts) -> exp.Expr:
        times = [text_literal(part) for part in parts if part.type == "STRING"]
        return AskedPast(this=times[0] if times[1:] else None, expression=times[-1])

    # SELECT

    def select(self, parts: Parts) -> exp.Expr:
        selection: _Selection = parts[1]
        first, *others = [part for part in parts if isinstance(part, Source | Rows)]
        made = exp.Select(
            expressions=[selection.items],
            kind=selection.told,
            distinct=exp.Distinct() if selection.distinct else None,
            from_=exp.From(this=first),
        )
        joins = [exp.Join(this=other) for other in others]
        joins += [part for part in parts if isinstance(part, exp.Join)]
        if joins:
            made.set("joins", joins)
        for part in parts:
            if type(part) is _Clause:
                _add(made, part)
        return made

    def told(self, parts: Parts) -> _Selection:
        told, _, items, _ = parts
        made: _Selection = items._replace(told=word(told))
        return made

    def items(self, parts: Parts) -> _Selection:
        items = _nodes(parts)
        made = at(exp.Tuple(expressions=items), items[0], items[-1])
        return _Selection(made, distinct=isinstance(parts[0], Token))

    def everything(self, parts: Parts) -> exp.Expr:
        return at(exp.Star(), parts[0], parts[0])

    def aliased(self, parts: Parts) -> exp.Expr:
        item, _, name = parts
        return at(exp.Alias(this=item, alias=name), item, name)

    def in_group(self, parts: Parts) -> exp.Expr:
        """A stream or a layer with its group: one name, which has a dot in it."""
        group, _, table = parts
        name = exp.Identifier(this=f"{group.name}.{table.name}", quoted=True)
        return at(name, group, table)

    def source(self, parts: Parts) -> exp.Expr:
        name, *windows = parts
        aliased = bool(windows) and isinstance(windows[-1], exp.TableAlias)
        alias = windows.pop() if aliased else _own_label(name)
        return Source(this=name, alias=alias, windows=windows)

    def rows(self, parts: Parts) -> exp.Expr:
        alias = parts[3] if len(parts) > 3 else None
        return at(Rows(this=parts[1], alias=alias), parts[0], parts[2])

    def joined(self, parts: Parts) -> exp.Expr:
        return self.source(parts)

    def labelled(self, parts: Parts) -> exp.Expr:
        label, _, name, *windows = parts
        return Source(this=name, alias=exp.TableAlias(this=label), windows=windows)

    def alias(self, parts: Parts) -> exp.Expr:
        last = parts[-1]
        name = identifier(last) if isinstance(last, Token) else last
        return exp.TableAlias(this=name)

    def join(self, parts: Parts) -> exp.Expr:
        other, _, condition = parts[-3:]
        words = {part.type for part in parts[:-3] if isinstance(part, Token)}
        return exp.Join(
            this=other,
            on=condition,
            kind="LAYER" if "LAYER" in words else None,
            side="LEFT" if "LEFT" in words else None,
        )

    # clauses

    def where(self, parts: Parts) -> _Clause:
        return _Clause("where", exp.Where(this=parts[1]), parts[0])

    def group(self, parts: Parts) -> _Clause:
        return _Clause("group", exp.Group(expressions=list(parts[1::2])), parts[0])

    def having(self, parts: Parts) -> _Clause:
        return _Clause("having", exp.Having(this=parts[1]), parts[0])

    def top(self, parts: Parts) -> _Clause:
        words = [part.type if isinstance(part, Token) else "" for part in parts]
        made = Greatest(
            this=parts[1],
            descending="DESC" in words,
            count=Quantity(this=parts[words.index("LIMIT") + 1]),
            expression=parts[-1] if "PER" in words else None,
        )
        return _clause("top", made, parts)

    def lasting_for(self, parts: Parts) -> _Clause:
        return _clause("lasting", Holding(expressions=list(parts[1:])), parts)

    def until(self, parts: Parts) -> _Clause:
        return _clause("until", Until(this=parts[1]), parts)

    def inside(self, parts: Parts) -> _Clause:
        (region,) = parts
        return _Clause("inside", region, region.meta[FIRST])

    def meets(self, parts: Parts) -> _Clause:
        made = Inside(expressions=[parts[1]], form=exp.Var(this="meets"))
        return _clause("inside", made, parts)

    def ahead(self, parts: Parts) -> _Clause:
        _, region, _, lasting, *by = parts
        said = [region, lasting, *by[1:]]
        form = exp.Var(this="ahead")
        return _clause("inside", Inside(expressions=said, form=form), parts)

    def knn(self, parts: Parts) -> _Clause:
        kind = exp.Var(this=_NEAREST[parts[0].type])
        return _clause("knn", Knn(this=kind, expressions=parts[1].expressions), parts)

    def detect(self, parts: Parts) -> _Clause:
        return _clause("detect", Detect(expressions=list(parts[1::2])), parts)

    def event(self, parts: Parts) -> exp.Expr:
        lasting = parts[1] if len(parts) > 1 else None
        made = Detected(this=word(parts[0]), expression=lasting)
        return at(made, parts[0], parts[-1])

    def members(self, parts: Parts) -> _Clause:
        return _clause("window", Lasting(this=parts[1]), parts)

    def compare(self, parts: Parts) -> _Clause:
        box = parts[-1].expressions
        made = Comparing(expressions=box, negative=isinstance(parts[1], Token))
        return _clause("compare", made, parts)

    def using(self, parts: Parts) -> _Clause:
        return _clause("using", Using(expressions=list(parts[1::2])), parts)

    def step(self, parts: Parts) -> exp.Expr:
        name, given = parts
        return at(Step(this=name, expressions=given.expressions), name, given)

    def step_name(self, parts: Parts) -> exp.Expr:
        return _name(parts[0])

    def emit(self, parts: Parts) -> _Clause:
        mode = exp.Var(this=parts[1].lower())
        intervals = _nodes(parts)
        interval = intervals[0] if intervals else None
        valid = [part for part in parts if getattr(part, "type", "") == "WITH_VALID"]
        if not valid:
            return _clause("emit", Emit(this=mode, interval=interval), parts)
        made = Emit(this=mode, interval=interval, valid_until=True)
        made = at(made, valid[0], parts[-1])
        made.meta["start"] = valid[0].span[1] - len("VALID")
        return _Clause("emit", made, parts[0])

    def options(self, parts: Parts) -> _Clause:
        return _clause("options", Options(expressions=parts[1].expressions), parts)

    def chosen(self, parts: Parts) -> exp.Expr:
        return at(exp.Tuple(expressions=list(parts[1:-1:2])), parts[0], parts[-1])

    def option(self, parts: Parts) -> exp.Expr:
        name, _, *values = parts
        value = values[0]
        if len(values) > 1:
            value = at(exp.Tuple(expressions=values), values[0], values[-1])
        return at(exp.EQ(this=name, expression=value), name, value)

    def option_name(self, parts: Parts) -> exp.Expr:
        return _name(parts[0])

    def text_of_option(self, parts: Parts) -> exp.Expr:
        return text_literal(parts[0])


def _own_label(name: exp.Expr) -> exp.TableAlias | None:
    """What a table with its group is called where it has no alias: by its own name."""
    group, table = split_name(name.name)
    if not group:
        return None
    return exp.TableAlias(this=at(exp.to_identifier(table, quoted=True), name, name))


def _is_conditional(parts: Parts) -> bool:
    """Whether IF EXISTS or IF NOT EXISTS stands before the name."""
    return getattr(parts[2], "type", "") in ("IF_EXISTS", "IF_NOT_EXISTS")


def _nodes(parts: Parts) -> list[exp.Expr]:
    return [part for part in parts if isinstance(part, exp.Expr)]


def _name(part: Token | exp.Expr) -> exp.Expr:
    return identifier(part) if isinstance(part, Token) else part


def _clause(key: str, node: exp.Expr, parts: Parts) -> _Clause:
    """A clause whose node reaches from its first word to its end."""
    return _Clause(key, at(node, parts[0], parts[-1]), parts[0])


def _add(select: exp.Expr, clause: _Clause) -> None:
    """Puts a clause into its SELECT; one that is there already is kept for what is refused."""
    if not select.args.get(clause.key):
        select.set(clause.key, clause.node)
        return
    message = f"there are multiple '{clause.first.upper()}' clauses"
    hint = "INSIDE a AND INSIDE b is one clause" if clause.key == "inside" else ""
    select.meta.setdefault(TWICE, []).append(Refused(message, clause.first.span, hint))
