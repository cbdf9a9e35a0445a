"""The rules of windows, regions and quantities as nodes."""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from st_common.query.grammar.located import at, identifier, text_literal
from st_common.query.grammar.nodes import FIRST, Bracket, Inside, Quantity, Reach
from st_common.query.grammar.tokens import Token

Parts = Sequence[Any]
_EXTENT = re.compile(
    r"\s*(?P<sign>[+-]?)(?P<number>(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)\s*(?P<unit>\w*)\s*",
    re.IGNORECASE,
)


def extent_in(text: str, start: int) -> Quantity | None:
    """The number and its unit that a text in quotes is, None for another; `start` is where it begins."""
    match = _EXTENT.fullmatch(text)
    if match is None:
        return None

    def place(node: exp.Expr, first: str, last: str) -> exp.Expr:
        node.meta["start"] = start + match.start(first)
        node.meta["end"] = start + match.end(last) - 1
        return node

    number = place(exp.Literal.number(match["number"]), "sign", "number")
    if match["sign"] == "-":
        number = place(exp.Neg(this=number), "sign", "number")
    unit = None
    if match["unit"]:
        unit = place(exp.to_identifier(match["unit"], quoted=False), "unit", "unit")
    last = "unit" if unit is not None else "number"
    made = place(Quantity(this=number, unit=unit), "sign", last)
    assert isinstance(made, Quantity)  # noqa: S101 - as it was given
    return made


class BuildingPlaces:
    """Where a query looks, how far back, and amounts."""

    # windows

    def window(self, parts: Parts) -> exp.Expr:
        begin, (reach, slide), end = parts
        return at(Bracket(this=reach, slide=slide), begin, end)

    def by_rows(self, parts: Parts) -> tuple[exp.Expr, exp.Expr | None]:
        return _reaches(parts[1], "rows", parts[-1])

    def by_time(self, parts: Parts) -> tuple[exp.Expr, exp.Expr | None]:
        return _reaches(parts[1], "time", parts[-1])

    def by_session(self, parts: Parts) -> tuple[exp.Expr, exp.Expr | None]:
        return _reaches(parts[1], "session", parts[-1])

    def by_extent(self, parts: Parts) -> tuple[exp.Expr, exp.Expr | None]:
        extent, domain = parts[2], parts[3]
        reach = _reach(extent, domain.lower(), domain)
        return reach, parts[5] if len(parts) > 4 else None

    def slide(self, parts: Parts) -> exp.Expr:
        _, _, extent, domain = parts
        return _reach(extent, domain.lower(), domain)

    def of_range(self, parts: Parts) -> Token:
        return _last(parts)

    def of_slide(self, parts: Parts) -> Token:
        return _last(parts)

    def extent(self, parts: Parts) -> exp.Expr:
        (part,) = parts
        if not isinstance(part, Token):
            return _node(part)
        quantity = extent_in(part[1:-1], part.span[0] + 1)
        assert quantity is not None  # noqa: S101 - the terminal is the same pattern
        return quantity

    def fixes(self, parts: Parts) -> exp.Expr:
        return _node(parts[0])

    # regions

    def any_region(self, parts: Parts) -> exp.Expr:
        return _region("any", list(parts[::2]), parts)

    def all_regions(self, parts: Parts) -> exp.Expr:
        return _region("all", list(parts[::2]), parts)

    def no_region(self, parts: Parts) -> exp.Expr:
        return _region("not", [parts[1]], parts)

    def in_one(self, parts: Parts) -> exp.Expr:
        word, region = parts
        made = self.no_region(parts) if word.type == "NOT_INSIDE" else region
        made.meta[FIRST] = word
        return at(made, word, region)

    def in_parentheses(self, parts: Parts) -> exp.Expr:
        return at(_node(parts[1]), parts[0], parts[-1])

    def corner_pair(self, parts: Parts) -> exp.Expr:
        return self.given(parts)

    def corners(self, parts: Parts) -> exp.Expr:
        form = "across" if len(parts) > 1 else "parts"
        return _region(form, parts[0].expressions, parts)

    def circle(self, parts: Parts) -> exp.Expr:
        return _region("circle", parts[-1].expressions, parts)

    def corridor(self, parts: Parts) -> exp.Expr:
        return _region("corridor", parts[-1].expressions, parts)

    def feature(self, parts: Parts) -> exp.Expr:
        return _region("feature", list(parts[2:-1:2]), parts)

    def well_known(self, parts: Parts) -> exp.Expr:
        return _region("wkt", [text_literal(parts[0])], parts)

    def named_area(self, parts: Parts) -> exp.Expr:
        return _region("name", list(parts), parts)

    def frozen_area(self, parts: Parts) -> exp.Expr:
        return _region("frozen", list(parts[1:]), parts)

    def given(self, parts: Parts) -> exp.Expr:
        return at(exp.Tuple(expressions=list(parts[1:-1:2])), parts[0], parts[-1])

    def place(self, parts: Parts) -> exp.Expr:
        return at(exp.Tuple(expressions=list(parts[1:-1:2])), parts[0], parts[-1])

    def text_part(self, parts: Parts) -> exp.Expr:
        return text_literal(parts[0])

    # amounts

    def quantity(self, parts: Parts) -> exp.Expr:
        unit = parts[1] if len(parts) > 1 else None
        return at(Quantity(this=parts[0], unit=unit), parts[0], parts[-1])

    def lasting(self, parts: Parts) -> exp.Expr:
        return self.quantity(parts)

    def plus(self, parts: Parts) -> exp.Expr:
        return _node(parts[1])

    def minus(self, parts: Parts) -> exp.Expr:
        sign, number = parts
        return at(exp.Neg(this=number), sign, number)

    def unit(self, parts: Parts) -> exp.Expr:
        (unit,) = parts
        return identifier(unit) if isinstance(unit, Token) else _node(unit)


def _region(form: str, inner: list[exp.Expr], parts: Parts) -> exp.Expr:
    made = Inside(expressions=inner, form=exp.Var(this=form))
    first = inner[0].meta.get(FIRST) if inner else None
    if first is not None:
        made.meta[FIRST] = first
    return at(made, parts[0], parts[-1])


def _reach(extent: exp.Expr, by: str, last: Token | exp.Expr) -> exp.Expr:
    return at(Reach(this=extent, by=exp.Var(this=by)), extent, last)


def _reaches(
    extent: exp.Expr, by: str, slide: exp.Expr
) -> tuple[exp.Expr, exp.Expr | None]:
    """The reach of a window, and that of its slide, which is counted in the same way where it does not say how."""
    reach = _reach(extent, by, extent)
    if slide is extent:
        return reach, None
    return reach, slide if isinstance(slide, Reach) else _reach(slide, by, slide)


def _last(parts: Parts) -> Token:
    last = parts[-1]
    assert isinstance(last, Token)  # noqa: S101 - by the grammar
    return last


def _node(part: Any) -> exp.Expr:
    assert isinstance(part, exp.Expr)  # noqa: S101 - by the grammar
    return part
