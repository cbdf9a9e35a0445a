"""What the names in a query mean once its stream is known: the declaration's spelling, and words that are no columns.

Names are found whatever their case, and the plan has them as they are declared. `ID`, `OID` and `ObjectID` mean the
object of a stream that has no such attribute. A bare word that is no column and is compared with a text column is
itself a text, as in `type = Car` (SPEC W8); who wrote it is told by a notice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from st_common.formats.format import Format
from st_common.formats.registry import format_of
from st_common.query.attribute_units import columns_now, fit_tags
from st_common.query.binding import Columns, bound, columns_of
from st_common.query.fix_columns import OBJECT_NAMES
from st_common.query.grammar import words
from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.group_names import GroupOf, Tables, found_table
from st_common.query.lowering.expression import COMPARISONS, Term
from st_common.query.measures import fit_units, measured
from st_common.query.pair_columns import of_other, own_name
from st_common.query.plan import COUNTS, Aggregate, LayerJoin, Plan, Value
from st_common.query.plan_expressions import with_expressions
from st_common.query.problem import Problem, did_you_mean
from st_common.query.several import called_anew
from st_common.query.tag_names import notices_of_tags

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.query.text import Statement

_Counted = TypeVar("_Counted", Aggregate, Value)
LayerTags = Callable[[str], Collection[str]]
"""Gives the names of the tags in the newest version of a layer."""

_COMPARISONS = tuple(kind for kind in COMPARISONS if kind is not exp.Is)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A statement with its names as they are declared, what its writer should know about words in it, and problems."""

    statement: "Statement"
    notices: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The columns of one expression: `known` by their names in small letters, `columns` with their types.

    A word that the `form` of its records has for a column is no text, though the stream does not keep it.
    """

    stream: str
    form: Format
    columns: Columns
    known: Mapping[str, str]

    def means(self, name: str) -> str | None:
        """The column that a name means."""
        folded = name.casefold()
        other = own_name(folded)
        if other in OBJECT_NAMES:
            return self.known.get(folded) or of_other("object")
        return self.known.get(folded) or ("object" if folded in OBJECT_NAMES else None)


@dataclass(slots=True)
class _Rewritten:
    """The expressions of a statement by their texts before, and the bare words that are texts."""

    texts: dict[str, str] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    notices: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def resolved(
    statement: "Statement",
    streams: "Mapping[str, StreamSettings]",
    layers: Collection[str],
    tags_of: LayerTags,
    group_of: GroupOf,
) -> Resolved:
    """A statement with its stream, layer and columns as they are declared; what is unknown stays as it is written.

    Args:
        statement: as it is written.
        streams: the settings of all streams.
        layers: the names of all layers.
        tags_of: gives the names of the tags of a layer.
        group_of: gives the group of a layer.
    """
    plan = statement.plan
    if plan is None:
        return Resolved(statement=statement)
    called = found_table(plan.stream, stream_tables(streams))
    if called == plan.stream and plan.join is None and not statement.terms:
        return Resolved(statement=statement)
    plan = replace(plan, stream=called)
    if plan.join is not None:
        of_layers = Tables(what="layer", names=layers, group_of=group_of)
        plan = replace(plan, join=_join(plan.join, of_layers, tags_of))
    stream = streams.get(plan.stream)
    if stream is None:
        return Resolved(statement=replace(statement, plan=plan))
    rewritten = _Rewritten()
    words_too = beside_speed(statement)
    for term in statement.terms:
        names, is_word = _names_of(stream, term), term in words_too
        _rewrite(statement, term, names, rewritten, stream=stream, is_word=is_word)
    has_tags = any(term.tags for term in rewritten.terms)
    if has_tags and plan.join is not None and plan.join.layer in layers:
        known = tags_of(plan.join.layer)
        rewritten.notices += notices_of_tags(statement, rewritten.terms, known)
    changed = replace(
        statement, plan=_with_texts(plan, rewritten.texts), terms=tuple(rewritten.terms)
    )
    return Resolved(
        statement=changed,
        notices=tuple(rewritten.notices),
        problems=tuple(rewritten.problems),
    )


def beside_speed(statement: "Statement") -> tuple[Term, ...]:
    """What stands beside AVGSPD after SELECT: the last terms of a statement, behind its condition and its key."""
    plan = statement.plan
    if plan is None or plan.aggregate is None or plan.aggregate.function != "avgspd":
        return ()
    others = (plan.where is not None) + (
        plan.join is not None and plan.join.left is not None
    )
    return statement.terms[others:]


def stream_tables(streams: "Mapping[str, StreamSettings]") -> Tables:
    """The streams by their names, each in the group of its settings."""
    return Tables(
        what="stream", names=streams, group_of=lambda name: streams[name].group
    )


def _join(join: LayerJoin, layers: Tables, tags_of: LayerTags) -> LayerJoin:
    """The join with its layer as it is called; a key `ID` is the feature's id where no feature has such a tag."""
    layer, right = found_table(join.layer, layers), join.right
    is_id = (
        right is not None
        and right.casefold() in OBJECT_NAMES
        and layer in layers.names
        and right not in tags_of(layer)
    )
    return replace(join, layer=layer, right="fid" if is_id else right)


def _names_of(stream: "StreamSettings", term: Term) -> _Names:
    columns = columns_of(
        stream.attributes,
        partner=term.partner,
        pair=term.of_objects,
        tags=term.tags,
        near=term.of_near,
    )
    return _Names(
        stream=stream.name,
        form=format_of(stream.format),
        columns=columns,
        known={name.casefold(): name for name, _ in columns},
    )


def _resolve(
    statement: "Statement",
    term: Term,
    names: _Names,
    tree: exp.Expr,
    *,
    is_word: bool,
) -> set[str]:
    """Puts the names that are meant into the tree of a term; gives those that became texts."""
    nodes = list(tree.find_all(exp.Column, bfs=False))
    bare = {name for name, _ in term.columns} - {
        name for name, span in term.columns if not _is_bare(statement, name, span)
    }
    # Which are texts is asked of the tree as it was, before any of them is replaced.
    texts = {
        id(node): node.name
        for node in nodes
        if node.name in bare and _is_text(node, names, is_word=is_word)
    }
    for node in nodes:
        meant = names.means(node.name)
        if meant is not None:
            node.set("this", exp.to_identifier(meant, quoted=not words.is_plain(meant)))
        elif id(node) in texts:
            node.replace(exp.Literal.string(node.name))
    return set(texts.values())


def _rewrite(
    statement: "Statement",
    term: Term,
    names: _Names,
    done: _Rewritten,
    *,
    stream: "StreamSettings",
    is_word: bool,
) -> None:
    """Adds a term as it is with its names resolved; `is_word`: a name alone may be a text as well."""
    is_plain = not term.measures and not term.tags
    if is_plain and all(names.means(name) == name for name, _ in term.columns):
        done.terms.append(term)
        return
    # In parentheses, so that also the root can be replaced.
    tree = exp.Paren(this=expression_of(term.text))
    places = measured(term, tree)
    read = _resolve(statement, term, names, tree, is_word=is_word)
    fitted = fit_tags(term, tree, places, stream)
    done.problems += [
        statement.problem(one.message, at=one.span, hint=one.hint)
        for one in fitted.problems
    ]
    done.problems += fit_units(statement, fitted.rest, stream)
    columns = tuple(
        (names.means(name) or name, span)
        for name, span in columns_now(term, tree, fitted.names)
        if name not in read
    )
    spans = [(name, span) for name, span in term.columns if name in read]
    done.notices += [
        _notice(statement, name, span, names)
        for name, span in sorted(spans, key=lambda pair: pair[1])
    ]
    done.texts[term.text] = text_of(tree.this)
    done.terms.append(
        replace(term, text=done.texts[term.text], columns=columns, measures=())
    )


def _is_bare(statement: "Statement", name: str, span: tuple[int, int]) -> bool:
    """Whether a column was written as a word alone: without a dot before it.

    In double quotes it may be, as GPAC prints its texts.
    """
    return statement.written(span) in (name, f'"{name}"')


def _is_text(node: exp.Column, names: _Names, *, is_word: bool) -> bool:
    """Whether a bare word that is no column is compared with a text, or stands alone where it `is_word`."""
    if names.means(node.name) or names.form.attribute(node.name):
        return False
    side: exp.Expr = node
    while isinstance(side.parent, exp.Paren):
        side = side.parent
    beside = side.parent
    if beside is None:
        return is_word
    if not isinstance(beside, _COMPARISONS):
        return False
    others = [each for each in beside.iter_expressions() if each is not side]
    return any(_kind_of(other, names) == "text" for other in others)


def _kind_of(tree: exp.Expr, names: _Names) -> str:
    """What an expression's values are; "other" for one without a column, or with one that is unknown.

    So `stat = 'free'` is a wrong name of a column: two texts are not worth comparing.
    """
    columns = [names.means(column.name) for column in tree.find_all(exp.Column)]
    if not columns or None in columns:
        return "other"
    copied = exp.Paren(this=tree.copy())
    for column in list(copied.find_all(exp.Column)):
        meant = names.means(column.name) or column.name
        column.set("this", exp.to_identifier(meant, quoted=not words.is_plain(meant)))
    return bound([text_of(copied)], names.columns)[0].kind


def _notice(
    statement: "Statement", name: str, span: tuple[int, int], names: _Names
) -> Problem:
    hint = did_you_mean(name, [known for known, _ in names.columns])
    message = f"{name} is no column of {names.stream}: read as the text '{name}'"
    return statement.problem(message, at=span, hint=hint)


def _with_texts(plan: Plan, texts: Mapping[str, str]) -> Plan:
    """The plan with its expressions as they are now."""
    if not texts:
        return plan
    now = with_expressions(plan, lambda text: texts.get(text, text))
    columns = tuple(_columns(plan.columns, texts))
    incident = now.incident
    if incident is not None and plan.incident is not None:
        incident = incident.called_anew(plan.incident)
    aggregate = _counted(now.aggregate)
    if aggregate is not None and plan.aggregate is not None:
        aggregate = called_anew(aggregate, plan.aggregate)
    return replace(now, aggregate=aggregate, columns=columns, incident=incident)


def _counted(aggregate: Aggregate | None) -> Aggregate | None:
    """The aggregate, with objects counted each once also where they were called by another name."""
    if aggregate is None:
        return None
    values = tuple(_counted_once(value) for value in aggregate.values)
    return _counted_once(replace(aggregate, values=values))


def _counted_once(value: _Counted) -> _Counted:
    if value.argument != "object" or value.function not in COUNTS:
        return value
    return replace(value, function="count_distinct", argument=None)


def _columns(
    columns: Iterable[tuple[str, str]], texts: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Columns with their texts; one that is called by its text is called by the new one."""
    for name, text in columns:
        now = texts.get(text, text)
        plain = (
            now[1:-1].replace('""', '"')
            if now.startswith('"') and now.endswith('"')
            else now
        )
        called = text in (words.quoted(name), name, words.quoted(of_other(name)))
        yield (own_name(plain) or plain if called and now != text else name), now
