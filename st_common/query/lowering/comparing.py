"""USING and COMPARE WITH: what becomes of a fix's box, and which box it must meet (BBoxDB, SPEC B8, B10)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from st_common.query.comparing import Compare, Transform
from st_common.query.filters import NEAR, NEAR_M
from st_common.query.grammar.nodes import (
    Comparing,
    Quantity,
    Refused,
    Step,
    Using,
    span_of,
)
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.quantity import expect, metres, object_id, plain, shown
from st_common.query.lowering.space import box_of
from st_common.query.problem import did_you_mean


def compare_of(comparing: Comparing) -> Compare:
    """The box of COMPARE WITH, and whether what does not meet it is asked for."""
    box = box_of(comparing.expressions, "COMPARE WITH (x1, y1, x2, y2): two corners")
    return Compare(box=box, negative=bool(comparing.args.get("negative")))


def transforms_of(using: Using, gathered: Gathered) -> tuple[Transform, ...]:
    """The steps of USING in their order; one that is wrong is gathered."""
    steps = [
        gathered.attempt(partial(_transform, step), None) for step in using.expressions
    ]
    return tuple(step for step in steps if step is not None)


def _transform(step: Step) -> Transform:
    name = step.this.name.lower()
    if name in STEPS:
        return STEPS[name](step.expressions)
    # What is no step may be a filter of users; which there are is known where the stream is.
    parts = step.expressions
    if (
        len(parts) != 1
        or not isinstance(parts[0], exp.Literal)
        or not parts[0].is_string
    ):
        hint = did_you_mean(name, STEPS) or (
            f"one of {', '.join(STEPS)}, or a filter of yours: name('custom value')"
        )
        raise Refused(f"unknown step {step.this.name!r}", span_of(step.this), hint)
    return Transform(kind="filter", name=name, text=str(parts[0].this))


def _metres(parts: Sequence[exp.Expr]) -> Transform:
    expect(parts, 1, "enlarge(50 m)")
    if parts[0].args.get("unit") is None:
        hint = "enlarge(50 m) grows by metres, enlarge_value(50) by coordinates, enlarge_factor(0.5) by a factor"
        raise Refused("expected a distance with its unit", span_of(parts[0]), hint)
    return Transform(kind="metres", amount=metres(parts[0]))


def _factor(parts: Sequence[exp.Expr]) -> Transform:
    return Transform(kind="factor", amount=_amount(parts, "enlarge_factor(0.5)"))


def _value(parts: Sequence[exp.Expr]) -> Transform:
    return Transform(kind="value", amount=_amount(parts, "enlarge_value(0.01)"))


def _amount(parts: Sequence[exp.Expr], like: str) -> float:
    expect(parts, 1, like)
    value = plain(parts[0])
    if not 0 <= value < math.inf:
        raise Refused("a box is enlarged by 0 or more", span_of(parts[0]), like)
    return abs(value)  # no -0.0


def _key(parts: Sequence[exp.Expr]) -> Transform:
    expect(parts, 1, "key('id')")
    return Transform(kind="key", text=object_id(parts[0], like="key('id')"))


def _box(parts: Sequence[exp.Expr]) -> Transform:
    return Transform(kind="box", box=box_of(parts, "box(x1, y1, x2, y2): two corners"))


def _filter(parts: Sequence[exp.Expr]) -> Transform:
    like = "filter('name', 'custom value')"
    name = _text(parts[0], like)
    if not name:
        raise Refused("expected the name of a filter", span_of(parts[0]), like)
    amount = NEAR_M if name == NEAR else 0.0
    if name == NEAR and isinstance(parts[-1], Quantity) and parts[-1].args.get("unit"):
        amount, parts = metres(parts[-1]), parts[:-1]
    if len(parts) > len(("name", "value")):
        expect(parts, 2, like)
    value = _text(parts[1], like) if len(parts) > 1 else None
    return Transform(kind="filter", name=name, text=value, amount=amount)


def _text(part: exp.Expr, like: str) -> str:
    if not isinstance(part, exp.Literal):
        raise Refused(
            f"expected a text in single quotes, not {shown(part)}", span_of(part), like
        )
    return str(part.this)


STEPS: dict[str, Callable[[Sequence[exp.Expr]], Transform]] = {
    "enlarge": _metres,
    "enlarge_factor": _factor,
    "enlarge_value": _value,
    "key": _key,
    "box": _box,
    "filter": _filter,
}
