"""WITH (...): in which order a query is carried out, and how its windows are counted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import get_args

from sqlglot import exp

from st_common.query.grammar.nodes import Options, Refused, Span, span_of
from st_common.query.grammar.sources import extent_in
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.quantity import metres, moment
from st_common.query.plan import Order
from st_common.query.problem import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What WITH says; `of_windows` is where the first option about windows stands."""

    order: Order = "auto"
    full: bool = False
    min_step_m: float = 0.0
    origin_s: float = 0.0
    of_windows: Span | None = None


def options_of(options: Options | None, gathered: Gathered) -> Chosen:
    """What the options say; one that is wrong is gathered."""
    chosen = Chosen()
    seen: set[str] = set()
    for option in options.expressions if options else ():
        chosen = gathered.attempt(partial(_with, option, chosen, seen), chosen)
    return chosen


def _with(option: exp.Expr, chosen: Chosen, seen: set[str]) -> Chosen:
    name, text = option.this, option.expression
    word = name.name.lower()
    if word not in _OPTIONS:
        hint = did_you_mean(name.name, _OPTIONS) or f"one of {', '.join(_OPTIONS)}"
        raise Refused(f"unknown option {name.name!r}", span_of(name), hint)
    if word in seen:
        raise Refused(f"there is a {word} already", span_of(name))
    seen.add(word)
    made = _OPTIONS[word](chosen, text)
    return (
        made
        if word == "plan" or made.of_windows
        else replace(made, of_windows=span_of(option))
    )


def _plan(chosen: Chosen, text: exp.Expr) -> Chosen:
    known = get_args(Order)
    if text.this not in known:
        hint = did_you_mean(text.this, known) or f"one of {', '.join(known)}"
        raise Refused(f"unknown plan {text.this!r}", span_of(text), hint)
    return replace(chosen, order=text.this)


def _windows(chosen: Chosen, text: exp.Expr) -> Chosen:
    if text.this not in ("full", "growing"):
        hint = (
            did_you_mean(text.this, ("full", "growing"))
            or "full: nothing until the whole range is there; growing"
        )
        raise Refused(f"unknown way of windows {text.this!r}", span_of(text), hint)
    return replace(chosen, full=text.this == "full")


def _min_step(chosen: Chosen, text: exp.Expr) -> Chosen:
    start, _ = span_of(text)
    quantity = extent_in(text.this, start + 1)
    if quantity is None:
        raise Refused(
            f"expected a distance, not {text.this!r}",
            span_of(text),
            "min_step = '10 m'",
        )
    return replace(chosen, min_step_m=metres(quantity, "a step"))


def _origin(chosen: Chosen, text: exp.Expr) -> Chosen:
    like = "origin = '2026-01-01T00:00:00Z'"
    since_1970 = extent_in(text.this, span_of(text)[0] + 1)
    if since_1970 is not None and since_1970.args.get("unit") is not None:
        return replace(chosen, origin_s=moment(since_1970))
    try:
        when = datetime.fromisoformat(text.this)
    except ValueError:
        raise Refused(f"{text.this!r} is no time", span_of(text), like) from None
    if when.tzinfo is None:
        raise Refused(
            "expected a time with its zone", span_of(text), f"{like}: Z is UTC"
        )
    since = when - _EPOCH
    return replace(
        chosen,
        origin_s=(
            since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
        )
        / 1e6,
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPTIONS: dict[str, Callable[[Chosen, exp.Expr], Chosen]] = {
    "plan": _plan,
    "windows": _windows,
    "min_step": _min_step,
    "origin": _origin,
}
