"""Plans as text: one canonical statement for every plan, and parsing it gives an equal plan back."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from st_common.query.grammar.statements import expression_of, text_of
from st_common.query.grammar.words import always_quoted, number, quoted, text_literal
from st_common.query.near_columns import names_near
from st_common.query.neighbours import (
    GroupNearest,
    Nearest,
    Neighbours,
    Place,
    ReverseNearest,
)
from st_common.query.pair_columns import names_other_columns, names_pair, other_label
from st_common.query.plan import LayerJoin, PairJoin, Plan, Window
from st_common.query.printed_aggregate import (
    aggregate_text,
    column_text,
    group_by,
)
from st_common.query.printed_fence import detect_text, fence_options_of
from st_common.query.printed_frame import (
    compare_text,
    frame_text,
    options_of,
    using_text,
)
from st_common.query.printed_incident import (
    incident_clauses,
    incident_options_of,
    interval_text,
    worst_text,
)
from st_common.query.printed_pair import identifier_of, written
from st_common.query.problem import did_you_mean
from st_common.query.sides import sides_of

__all__ = ["number", "said", "to_text"]

_OWN_COLUMNS = ("fid", "kind")
_TIGHT = (
    exp.Column,
    exp.Literal,
    exp.Anonymous,
    exp.Cast,
    exp.Extract,
    exp.AtTimeZone,
    exp.Case,
    exp.Boolean,
    exp.Null,
    exp.Paren,
)


def to_text(
    plan: Plan, name: str, *, op: Literal["register", "replace"] = "register"
) -> str:
    """The statement that registers `plan` as `name`, in one canonical form; `parse` gives an equal plan back."""
    return f"{op.upper()} QUERY {quoted(name)} AS {select_text(plan)}"


def select_text(plan: Plan) -> str:
    """The SELECT of a plan in one canonical form; what asks about its rows stands around it."""
    if plan.outer is None:
        return f"SELECT {' '.join(_clauses(plan))}"
    inner = select_text(replace(plan, outer=None, emit="changes"))
    aggregate, where = plan.outer.aggregate, plan.outer.where
    asked = "*" if aggregate is None else aggregate_text(aggregate, "")
    selected = _in_stream(plan, asked)
    parts = [f"SELECT {selected} FROM ({inner})"]  # noqa: S608 - a statement of ours
    parts += [] if where is None else [f"WHERE {where}"]
    parts += group_by(aggregate, "")
    lasting_s = plan.outer.lasting_s
    parts += [] if lasting_s is None else [f"FOR {number(lasting_s)} s"]
    window = plan.outer.window
    parts += [] if window is None else [f"WINDOW {_lasting(window)}"]
    return " ".join(parts)


def _clauses(plan: Plan) -> Iterator[str]:
    label = _label(plan)
    windows = frame_text(plan.frame) if plan.frame is not None else ""
    yield f"{_told(plan, label)} FROM {quoted(plan.stream)}{windows}"
    if plan.joined_with is not None and not plan.chooses:
        yield _join(plan, label)
    conditions = " AND ".join(_conditions(plan, label))
    if conditions:
        yield f"WHERE {conditions}"
    yield from incident_clauses(plan.incident)
    if plan.inside is not None:
        yield plan.inside.clause()
    if plan.neighbours is not None:
        yield _near(plan.neighbours)
    if plan.fence is not None:
        yield detect_text(plan.fence)
    yield from _above(plan, label)


def _above(plan: Plan, label: str) -> Iterator[str]:
    """The clauses about what becomes of the answer."""
    yield from group_by(plan.aggregate, label)
    if plan.window is not None:
        yield f"WINDOW {_lasting(plan.window)}"
    if plan.compare is not None:
        yield compare_text(plan.compare)
    if plan.transforms:
        yield using_text(plan.transforms)
    if plan.emit == "every" or plan.valid_until:
        every = f"EVERY{interval_text(plan.incident)}"
        mode = every if plan.emit == "every" else "CHANGES"
        yield f"EMIT {mode}{' WITH VALID UNTIL' if plan.valid_until else ''}"
    of_events = *fence_options_of(plan.fence), *incident_options_of(plan.incident)
    options = ", ".join([*options_of(plan), *of_events])
    if options:
        yield f"WITH ({options})"


def _label(plan: Plan) -> str:
    """How the text calls what the stream is joined with."""
    stream = plan.stream.casefold()
    if plan.pairs is not None:
        return other_label(plan.stream)
    if plan.join is None or plan.join.layer.casefold() != stream:
        return quoted(plan.join.layer) if plan.join else ""
    return "features" if stream != "features" else "features_"


def _told(plan: Plan, label: str) -> str:
    return _in_stream(plan, _selected(plan, label))


def _in_stream(plan: Plan, selected: str) -> str:
    """What is selected, behind the word for one of CQL's streams."""
    is_stream = plan.emit in ("istream", "dstream", "rstream")
    return f"{plan.emit.upper()}({selected})" if is_stream else selected


def _selected(plan: Plan, label: str) -> str:
    if plan.aggregate is not None:
        return aggregate_text(plan.aggregate, label)
    items = [
        column_text(name, text)
        if not names_other_columns(text)
        else f"{said(text, plan)} AS {quoted(name)}"
        for name, text in plan.columns
    ]
    if plan.incident is not None and plan.incident.worst is not None:
        items.append(worst_text(plan.incident.worst))
    return ", ".join(items) or "*"


def _joined_by(plan: Plan, label: str, then: str) -> str:
    """What the stream is joined with, and the conditions that join it, with a word between the two."""
    if plan.join is not None:
        return _joined(plan.stream, plan.join, label, then)
    return _paired(plan.stream, plan.pairs or PairJoin(), label, then)


def _joined(stream: str, join: LayerJoin, label: str, then: str) -> str:
    """The layer and the conditions that join it, with a word between the two."""
    layer = quoted(join.layer)
    called = (
        f"LAYER {layer} {label}"
        if join.layer.casefold() == stream.casefold()
        else layer
    )
    tags = "".join(
        f" AND {label}.{_tag(name)} = {text_literal(value)}"
        for name, value in join.tags
    )
    near = f"NEAREST({quoted(stream)}, {label}, {join.nearest})"
    if join.predicate == "nearest":
        return f"{called}{then}{near}{tags}"
    if join.nearest is not None:
        tags = f" AND {near}{tags}"
    if join.predicate == "equals":
        whose = "" if join.nearest is None else _told_whose(stream, join)
        return f"{called}{then}{whose}{_key(join, label)}{tags}"
    also = f" AND {_told_whose(stream, join)}{_key(join, label)}" if join.left else ""
    function = {"within": "ST_Within", "dwithin": "ST_DWithin"}.get(
        join.predicate, "ST_Intersects"
    )
    distance = f", {number(join.distance_m)} m" if join.predicate == "dwithin" else ""
    met = f"{function}({quoted(stream)}, {label}{distance})"
    return f"{called}{then}{met}{also}{tags}"


def _key(join: LayerJoin, label: str) -> str:
    return f"{_tight(join.left or '')} = {label}.{_feature_column(join.right or '')}"


def _told_whose(stream: str, join: LayerJoin) -> str:
    """The stream before a key that is a word alone: beside another condition such a word could be a text."""
    is_word = isinstance(expression_of(join.left or ""), exp.Column)
    return f"{quoted(stream)}." if is_word else ""


def _tag(name: str) -> str:
    """The fid, or the name of a tag, in quotes also where it could be taken for a column of features."""
    if name == "fid":
        return name
    return always_quoted(name) if did_you_mean(name, _OWN_COLUMNS) else quoted(name)


def _feature_column(name: str) -> str:
    if name.lower() in _OWN_COLUMNS and name not in _OWN_COLUMNS:
        return always_quoted(name)  # a tag that is called FID
    return quoted(name)


def _paired(name: str, pairs: PairJoin, label: str, then: str) -> str:
    stream = quoted(name)
    conditions = [
        f"{_qualified(key, stream)} = {_qualified(key, label)}" for key in pairs.keys
    ]
    if pairs.distance_m is not None:
        conditions.insert(
            0, f"ST_DWithin({stream}, {label}, {number(pairs.distance_m)} m)"
        )
    if pairs.nearest is not None:
        conditions.append(f"NEAREST({stream}, {label}, {pairs.nearest})")
    return f"{stream} {label}{then}{' AND '.join(conditions)}"


def _qualified(text: str, label: str) -> str:
    """An expression whose columns name what they are of, so that `=` may stand behind it."""
    tree = expression_of(text)
    for column in tree.find_all(exp.Column):
        column.set("table", identifier_of(label))
    return text_of(tree) if isinstance(tree, _TIGHT) else f"({text_of(tree)})"


def _tight(text: str) -> str:
    return text if isinstance(expression_of(text), _TIGHT) else f"({text})"


def _conditions(plan: Plan, label: str) -> Iterator[str]:
    if plan.joined_with is not None and plan.chooses:
        yield from _with_exists(plan, plan.joined_with, label)
        return
    joined = plan.joined_with
    if joined is not None and joined.is_outer:
        first = sides_of(plan.where).first
        yield from () if first is None else (first,)
        return
    kinds = plan.join.kinds if plan.join else ()
    if kinds:
        yield f"{label}.kind {_choice(kinds)}"
    if plan.where is not None:
        where = said(plan.where, plan)
        yield f"({where})" if kinds and _is_loose(plan.where) else where


def _join(plan: Plan, label: str) -> str:
    """What stands behind FROM; of LEFT JOIN with all that is asked of features."""
    joined = plan.joined_with
    if joined is None or not joined.is_outer:
        return f"JOIN {_joined_by(plan, label, ' ON ')}"
    return f"LEFT JOIN {' AND '.join(_on(plan, joined, label, ' ON '))}"


def _on(plan: Plan, join: LayerJoin | PairJoin, label: str, then: str) -> Iterator[str]:
    """What joins, and all that is asked of a fix and a feature, or of another object."""
    yield _joined_by(plan, label, then)
    if isinstance(join, LayerJoin) and join.kinds:
        yield f"{label}.kind {_choice(join.kinds)}"
    beside = sides_of(plan.where).beside
    if beside is not None:
        # In ON, and in EXISTS, about the stream itself a bare column could be of either.
        both = said(beside, plan, qualified=plan.pairs is not None)
        yield f"({both})" if _is_loose(beside) else both


def _with_exists(plan: Plan, join: LayerJoin | PairJoin, label: str) -> Iterator[str]:
    """What is asked of a fix, then EXISTS with all that is asked of it and a feature, or another object."""
    sides = sides_of(plan.where)
    if sides.first is not None:
        yield f"({sides.first})" if _is_loose(sides.first) else sides.first
    word = "NOT EXISTS" if join.how == "anti" else "EXISTS"
    asked = " AND ".join(_on(plan, join, label, " WHERE "))
    yield f"{word} (SELECT 1 FROM {asked})"  # noqa: S608 - a statement of ours


def _is_loose(text: str) -> bool:
    """Whether a condition needs parentheses beside AND."""
    return isinstance(expression_of(text), exp.Or)


def said(text: str, plan: Plan, *, qualified: bool = False) -> str:
    """An expression of a plan as it is written: `distance()`, columns of a pair by the names of its two.

    Args:
        text: canonical SQL.
        plan: whose expression it is.
        qualified: whether columns of the first object name the stream, where another one is named too.
    """
    has_other = plan.pairs is not None or plan.join is not None
    if not (names_near(text) or (has_other and names_pair(text))):
        return text
    return written(text, plan.stream, _label(plan), qualified=qualified)


def _choice(kinds: tuple[str, ...]) -> str:
    texts = [text_literal(kind) for kind in kinds]
    return f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"


def _near(neighbours: Neighbours) -> str:
    if isinstance(neighbours, ReverseNearest):
        return f"REVERSE KNN {_place(neighbours.place)}"
    if isinstance(neighbours, GroupNearest):
        places = ", ".join(_place(place) for place in neighbours.places)
        return f"GROUP KNN ({neighbours.k}, {neighbours.total.upper()}, {places})"
    return _nearest(neighbours)


def _nearest(nearest: Nearest) -> str:
    place = nearest.place
    if place.focal is not None:
        return f"KNN ('M', {nearest.k}, {text_literal(place.focal)})"
    return f"KNN ({nearest.k}, {number(place.x)}, {number(place.y)})"


def _place(place: Place) -> str:
    if place.focal is not None:
        return f"('M', {text_literal(place.focal)})"
    return f"({number(place.x)}, {number(place.y)})"


def _lasting(window: Window) -> str:
    return (
        f"{window.tuples} TUPLES"
        if window.tuples is not None
        else f"{number(window.seconds or 0.0)} s"
    )
