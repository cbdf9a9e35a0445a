"""WITH (...): how a query is carried out, how its windows are counted, what a fence takes for a crossing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import get_args

from sqlglot import exp

from st_common.query.fence import Debounce
from st_common.query.grammar.building_places import extent_in
from st_common.query.grammar.nodes import Options, Quantity, Refused, Span, span_of
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.quantity import duration, metres, moment, whole
from st_common.query.plan import Order
from st_common.query.problem import did_you_mean

FIXES = ("fix", "fixes")
MOST_FIXES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What WITH says.

    `of_windows` and `of_fence` are where the first option about windows, or about DETECT alone, stands; `of_gap` is
    where `max_gap` does, an option of DETECT and of FOR.
    """

    order: Order = "auto"
    full: bool = False
    min_step_m: float = 0.0
    origin_s: float = 0.0
    enter_after: Debounce = field(default_factory=Debounce)
    exit_after: Debounce = field(default_factory=Debounce)
    hysteresis_m: float = 0.0
    max_gap_s: float | None = None
    restart: bool = False
    of_windows: Span | None = None
    of_fence: Span | None = None
    of_gap: Span | None = None


def options_of(options: Options | None, gathered: Gathered) -> Chosen:
    """What the options say; one that is wrong is gathered."""
    chosen = Chosen()
    seen: set[str] = set()
    for option in options.expressions if options else ():
        chosen = gathered.attempt(partial(_with, option, chosen, seen), chosen)
    return chosen


def _with(option: exp.Expr, chosen: Chosen, seen: set[str]) -> Chosen:
    name = option.this
    word = name.name.lower()
    if word not in OPTIONS:
        hint = did_you_mean(name.name, OPTIONS) or f"one of {', '.join(OPTIONS)}"
        raise Refused(f"unknown option {name.name!r}", span_of(name), hint)
    if word in seen:
        raise Refused(f"there is a {word} already", span_of(name))
    seen.add(word)
    made = OPTIONS[word](chosen, option.expression)
    if word in _OF_WINDOWS and made.of_windows is None:
        return replace(made, of_windows=span_of(option))
    if word == "max_gap":
        return replace(made, of_gap=span_of(option))
    if word in _OF_FENCE and made.of_fence is None:
        return replace(made, of_fence=span_of(option))
    return made


def _text(value: exp.Expr) -> str:
    """The text of an option that is no quantity."""
    if not isinstance(value, exp.Literal):
        raise Refused("expected a text in single quotes", span_of(value))
    return str(value.this)


def _amounts(value: exp.Expr, what: str, like: str) -> Sequence[Quantity]:
    """The quantities of an option, each with its unit; one alone may stand in quotes: `'10 m'`."""
    quantities: Sequence[exp.Expr | None] = [value]
    if isinstance(value, exp.Tuple):
        quantities = value.expressions
    elif isinstance(value, exp.Literal):
        quantities = [extent_in(value.this, span_of(value)[0] + 1)]
    amounts = [
        one for one in quantities if isinstance(one, Quantity) and one.args["unit"]
    ]
    if len(amounts) < len(quantities):
        raise Refused(f"expected {what} with its unit", span_of(value), like)
    return amounts


def _amount(value: exp.Expr, what: str, like: str) -> Quantity:
    """The one quantity of an option."""
    first, *others = _amounts(value, what, like)
    if others:
        raise Refused(f"expected {what} alone", span_of(value), like)
    return first


def _plan(chosen: Chosen, value: exp.Expr) -> Chosen:
    known, text = get_args(Order), _text(value)
    order: Order | None = next((one for one in known if one == text), None)
    if order is None:
        hint = did_you_mean(text, known) or f"one of {', '.join(known)}"
        raise Refused(f"unknown plan {text!r}", span_of(value), hint)
    return replace(chosen, order=order)


def _windows(chosen: Chosen, value: exp.Expr) -> Chosen:
    text = _text(value)
    if text not in ("full", "growing"):
        hint = (
            did_you_mean(text, ("full", "growing"))
            or "full: nothing until the whole range is there; growing"
        )
        raise Refused(f"unknown way of windows {text!r}", span_of(value), hint)
    return replace(chosen, full=text == "full")


def _min_step(chosen: Chosen, value: exp.Expr) -> Chosen:
    step = _amount(value, "a distance", "min_step = '10 m'")
    return replace(chosen, min_step_m=metres(step, "a step"))


def _hysteresis(chosen: Chosen, value: exp.Expr) -> Chosen:
    margin = _amount(value, "a distance", "hysteresis = 30 m")
    return replace(chosen, hysteresis_m=metres(margin, "a hysteresis"))


def _max_gap(chosen: Chosen, value: exp.Expr) -> Chosen:
    gap = _amount(value, "a time", "max_gap = 60 s")
    return replace(chosen, max_gap_s=duration(gap, "a gap"))


def _visits(chosen: Chosen, value: exp.Expr) -> Chosen:
    text, known = _text(value), ("kept", "anew")
    if text not in known:
        hint = did_you_mean(text, known) or "kept: those of the fence before; anew"
        raise Refused(f"unknown way of visits {text!r}", span_of(value), hint)
    return replace(chosen, restart=text == "anew")


def _enter_after(chosen: Chosen, value: exp.Expr) -> Chosen:
    return replace(chosen, enter_after=_debounce(value, "enter_after = 2 fixes"))


def _exit_after(chosen: Chosen, value: exp.Expr) -> Chosen:
    return replace(chosen, exit_after=_debounce(value, "exit_after = 2 fixes"))


def _debounce(value: exp.Expr, like: str) -> Debounce:
    return in_a_row(value, _amounts(value, "a number of fixes or a time", like), like)


def in_a_row(value: exp.Expr, amounts: Sequence[Quantity], like: str) -> Debounce:
    """`2 fixes`, `10 s`, or both in any order without a comma; `value` is where they stand.

    Raises:
        Refused: an amount without a unit, or two of a kind.
    """
    counted: dict[str, float] = {}
    for amount in amounts:
        if not amount.args["unit"]:
            message = "expected a number of fixes or a time with its unit"
            raise Refused(message, span_of(amount), like)
        of_fixes = amount.args["unit"].name.lower() in FIXES
        field_name = "fixes" if of_fixes else "seconds"
        if field_name in counted:
            raise Refused("expected a number of fixes and a time", span_of(value), like)
        counted[field_name] = (
            _fixes(amount) if of_fixes else duration(amount, "a row of fixes", FIXES)
        )
    return Debounce(
        fixes=int(counted.get("fixes", 1)), seconds=counted.get("seconds", 0.0)
    )


def _fixes(amount: Quantity) -> int:
    number = Quantity(this=amount.this, unit=None)
    return whole(number, "a number of fixes", MOST_FIXES)


def _origin(chosen: Chosen, value: exp.Expr) -> Chosen:
    like, text = "origin = '2026-01-01T00:00:00Z'", _text(value)
    since_1970 = extent_in(text, span_of(value)[0] + 1)
    if since_1970 is not None and since_1970.args.get("unit") is not None:
        return replace(chosen, origin_s=moment(since_1970))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{text!r} is no time", span_of(value), like) from None
    if when.tzinfo is None:
        raise Refused(
            "expected a time with its zone", span_of(value), f"{like}: Z is UTC"
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
OPTIONS: dict[str, Callable[[Chosen, exp.Expr], Chosen]] = {
    "plan": _plan,
    "windows": _windows,
    "min_step": _min_step,
    "origin": _origin,
    "enter_after": _enter_after,
    "exit_after": _exit_after,
    "hysteresis": _hysteresis,
    "max_gap": _max_gap,
    "visits": _visits,
}
_OF_WINDOWS = ("windows", "min_step", "origin")
_OF_FENCE = ("enter_after", "exit_after", "hysteresis", "visits")
