"""The condition by which records enter a stream: an expression of the language over columns that have no types yet.

Each column is of the type that is asked of it where it stands:

    _type = 'location' AND valid AND acc < 50      a text, a truth value, a number

`decode` evaluates it, without a parser: what the database is asked stands in the filter, and in the log.
"""

from collections.abc import Iterable, Mapping

from sqlglot import exp

from st_common.config.entry_filter import Clause, EntryFilter, Kind
from st_common.config.keys import Place
from st_common.query.binding import bound
from st_common.query.cells import GRID, H3
from st_common.query.grammar.nodes import Refused, Span, span_of
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.lowering.expression import Term, conjuncts, term_of
from st_common.query.lowering.scope import Scope
from st_common.query.wrong_times import wrong_times
from st_common.written import whole_number

_OF_ATTRIBUTE: Mapping[str, Kind] = {
    "string": "string",
    "double": "double",
    "long": "double",
    "bool": "bool",
}
_IN_DUCKDB: Mapping[Kind, str] = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
}
_OF_CAST: Mapping[str, Kind] = {
    "VARCHAR": "string",
    "DOUBLE": "double",
    "BIGINT": "double",
    "INT": "double",
    "BOOLEAN": "bool",
}
_NUMBERS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
_ORDER = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_COMPARISONS = (*_ORDER, exp.EQ, exp.NEQ, exp.In, exp.NullSafeEQ, exp.NullSafeNEQ)
_ASKED_BY: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((exp.And, exp.Or, exp.Not), "bool"),
    (_NUMBERS, "double"),
    # What CAST says of a value it says of its text.
    ((exp.Like, exp.ILike, exp.DPipe, exp.Cast, exp.Extract), "string"),
)
_MADE_BY: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((exp.Boolean,), "bool"),
    (_NUMBERS, "double"),
    ((exp.DPipe,), "string"),
)
_TEXTS = frozenset(
    (
        *("CONCAT", "CONTAINS", "ENDS_WITH", "LENGTH", "LOWER", "LTRIM", "RTRIM"),
        *("REGEXP_MATCHES", "STARTS_WITH", "SUBSTR", "SUBSTRING", "TRIM", "UPPER"),
    )
)
_AS_ITS_ARGUMENTS = frozenset(("COALESCE", "IFNULL", "NULLIF", "GREATEST", "LEAST"))
_TIMES = frozenset(
    (
        *("DATE_TRUNC", "DAY", "DAYOFWEEK", "EPOCH", "HOUR", "ISODOW", "MINUTE"),
        *("MONTH", "SECOND", "STRFTIME", "YEAR"),
    )
)
_EXACT = 2**53  # from here on not every whole number is a double
_RECORDS = Scope(label="the record", own=frozenset())


def entry_filter_of(
    text: str, kinds: Iterable[tuple[str, str]], place: Place
) -> EntryFilter:
    """The filter that a text of the settings says.

    Args:
        text: the condition.
        kinds: columns of records that are attributes, with the types that the settings declare.
        place: where it stands, for errors.

    Raises:
        ConfigError: it is no condition, or calls what an expression cannot call.
    """
    declared = {column: _OF_ATTRIBUTE[kind] for column, kind in kinds}
    try:
        return _filter_of(text, declared)
    except Refused as error:
        start, end = error.span
        at = f" (at {text[start:end]!r})" if text[start:end].strip() else ""
        raise place.wrong(
            f"where = {text!r}: {error.message}{at}", hint=error.hint
        ) from None
    except RecursionError:
        raise place.wrong("where is nested too deeply") from None


def _filter_of(text: str, declared: Mapping[str, Kind]) -> EntryFilter:
    columns: dict[tuple[str, Kind], str] = {}
    clauses: list[Clause] = []
    terms: list[Term] = []
    for part in list(conjuncts(expression_of(text))):
        _check_columns(part)
        terms.append(term_of(part, _RECORDS, needs="boolean"))
        _check(terms[-1])
        sql = _typed(terms[-1], declared, columns)
        clauses.append(Clause(text=terms[-1].text, sql=sql))
    if not columns:
        raise Refused("it names no column of a record", terms[0].span, "speed > 3")
    names = tuple((name, _IN_DUCKDB[kind]) for (_, kind), name in columns.items())
    for term, clause in zip(terms, clauses, strict=True):
        for said, hint in wrong_times(clause.sql, names):
            raise Refused(said, term.span, hint)
    for term, clause, one in zip(
        terms, clauses, bound([one.sql for one in clauses], names), strict=True
    ):
        if one.error:
            said = _as_written(one.error, columns)
            hint = "CAST(.. AS ..) turns one type into another"
            raise Refused(said, term.span, hint)
        if one.kind != "boolean":
            message = f"{clause.text} is no condition"
            raise Refused(message, term.span, "such as speed > 3")
    is_one = len(clauses) == 1
    texts = [one.text if is_one else _wrapped(one.text) for one in clauses]
    return EntryFilter(
        text=" AND ".join(texts),
        clauses=tuple(clauses),
        columns=tuple(columns),
    )


def _wrapped(text: str) -> str:
    return f"({text})" if isinstance(expression_of(text), exp.Or) else text


def _check_columns(tree: exp.Expr) -> None:
    """Refuses names with dots that are not quoted: no table is called so, and paths of records are names."""
    for column in tree.find_all(exp.Column):
        if column.args.get("table") is not None:
            path = ".".join(part.name for part in column.parts)
            message = f"{path} is no column of a record"
            raise Refused(
                message, span_of(column), f'a path stands in quotes: "{path}"'
            )


def _check(term: Term) -> None:
    """Refuses what records cannot be asked."""
    for _, _, span in term.measures:
        hint = "columns of records have no units: give the number alone"
        raise Refused("a number with a unit", span, hint)
    for node in expression_of(term.text).walk():
        if isinstance(node, exp.Anonymous) and node.name in (H3, GRID):
            raise Refused(f"{node.name} has no place here", term.span, "name columns")
        if isinstance(node, exp.Literal) and _is_too_exact(node):
            hint = f"compare it as a text: '{node.this}'"
            raise Refused(f"{node.this} is too large for a number", term.span, hint)


def _is_too_exact(node: exp.Expr) -> bool:
    digits = str(node.this)
    is_whole = not node.args["is_string"] and digits.isdigit()
    return is_whole and whole_number(digits, _EXACT) is None


def _typed(
    term: Term, declared: Mapping[str, Kind], columns: dict[tuple[str, Kind], str]
) -> str:
    """The term over columns that have types, which are put among `columns`."""
    tree = expression_of(term.text)
    for column in list(tree.find_all(exp.Column)):
        kind = _asked_of(column, declared, term.span)
        key = column.name, kind or declared.get(column.name, "string")
        name = columns.setdefault(key, f"c{len(columns)}")
        column.set("this", exp.to_identifier(name))
    return text_of(tree)


def _asked_of(node: exp.Expr, declared: Mapping[str, Kind], span: Span) -> Kind | None:
    """The type that is asked of a value where it stands; None where any would do."""
    child, parent = node, node.parent
    while isinstance(parent, exp.Paren):
        child, parent = parent, parent.parent
    if parent is None or (isinstance(parent, exp.If) and parent.this is child):
        return "bool"
    fixed = next((kind for by, kind in _ASKED_BY if isinstance(parent, by)), None)
    if fixed is not None:
        return fixed
    if isinstance(parent, exp.Is):
        return "bool" if isinstance(parent.expression, exp.Boolean) else None
    if isinstance(parent, _COMPARISONS):
        return _compared(child, parent, declared, span)
    if isinstance(parent, exp.Anonymous):
        return _given(child, parent, declared, span)
    return _asked_of(parent, declared, span)


def _compared(
    child: exp.Expr, parent: exp.Expr, declared: Mapping[str, Kind], span: Span
) -> Kind | None:
    others = [one for one in parent.iter_expressions() if one is not child]
    known = [kind for one in others if (kind := _kind_of(one, declared))]
    own = child.unnest()
    if known or not isinstance(parent, _ORDER):
        return known[0] if known else None
    if isinstance(own, exp.Column) and own.name not in declared:
        hint = f"say their type: CAST({own.name} AS DOUBLE)"
        raise Refused("columns of an unknown type have no order", span, hint)
    return None


def _given(
    child: exp.Expr, call: exp.Expr, declared: Mapping[str, Kind], span: Span
) -> Kind | None:
    """The type that a function takes."""
    if call.name in _TEXTS:
        is_count = call.name.startswith("SUBSTR") and child is not call.expressions[0]
        return "double" if is_count else "string"
    if call.name in _AS_ITS_ARGUMENTS:
        others = [one for one in call.expressions if one is not child]
        known = [kind for one in others if (kind := _kind_of(one, declared))]
        return known[0] if known else _asked_of(call, declared, span)
    return None if call.name in _TIMES else "double"


def _kind_of(node: exp.Expr, declared: Mapping[str, Kind]) -> Kind | None:
    """The type of a value by itself; None where nothing says it."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return "string" if node.args["is_string"] else "double"
    if isinstance(node, exp.Cast):
        return _OF_CAST.get(str(node.to))
    if isinstance(node, exp.Column):
        return declared.get(node.name)
    if isinstance(node, exp.Anonymous):
        return _of_call(node, declared)
    return next((kind for by, kind in _MADE_BY if isinstance(node, by)), None)


def _of_call(call: exp.Expr, declared: Mapping[str, Kind]) -> Kind | None:
    if call.name in _TIMES:
        return None
    if call.name in _AS_ITS_ARGUMENTS:
        kinds = (_kind_of(one, declared) for one in call.expressions)
        return next(filter(None, kinds), None)
    is_text = call.name in _TEXTS and call.name != "LENGTH"
    return "string" if is_text else "double"


def _as_written(error: str, columns: Mapping[tuple[str, Kind], str]) -> str:
    """What the database says, with names as they were written."""
    for (name, _), mine in sorted(columns.items(), key=lambda one: -len(one[1])):
        error = error.replace(f'"{mine}"', name)
    return error
