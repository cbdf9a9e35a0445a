"""Changes and queries in plain words."""

from collections.abc import Iterator
from datetime import datetime
from functools import singledispatch

from st_common.query.explain_steps import transform_in_words, windows_in_words
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import LayerJoin, PairJoin, Plan, Window
from st_common.regions.region import Region


def moment(time: datetime | None) -> str:
    """A time for people: UTC, with fractions of a second only where there are some: `2024-01-01 12:00:00.5 UTC`."""
    if time is None:
        return "an unknown time"
    text = f"{time:%Y-%m-%d %H:%M:%S}"
    return (
        f"{text}.{time.microsecond:06d}".rstrip("0") + " UTC"
        if time.microsecond
        else f"{text} UTC"
    )


_LENGTHS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def lasting(seconds: float) -> str:
    """How long something took, as people say it: 300 s is "5 minutes", 3600 s "1 hour", 90 s stays "90 s"."""
    for name, length in _LENGTHS:
        if seconds >= length and seconds % length == 0:
            count = round(seconds / length)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds:.10g} s"


def asked(plan: Plan) -> str:
    """What a member of the plan's answer is like: "inside the rectangle (0, 0) to (5, 5), where speed > 3"."""
    return ", ".join(_parts(plan)) or "any object of the stream"


def _parts(plan: Plan) -> Iterator[str]:
    clauses = (plan.neighbours, plan.inside, plan.join, plan.pairs)
    yield from (_worded(clause) for clause in clauses if clause is not None)
    for step in plan.transforms:
        yield transform_in_words(step)
    if plan.compare is not None:
        yield f"{'not ' if plan.compare.negative else ''}meeting {plan.compare.box.holds().removeprefix('inside ')}"
    if plan.frame is not None:
        yield f"in {' and in '.join(windows_in_words(plan.frame))}"
    if plan.where is not None:
        yield f"where {plan.where}"
    if plan.window is not None:
        yield _worded(plan.window)


def value_of(plan: Plan) -> str:
    """What the value of an aggregate's row is: "count", "avg of speed"."""
    if plan.aggregate is None:
        return "value"
    if plan.aggregate.function == "avgspd":
        return "average speed"
    values = plan.aggregate.values or (plan.aggregate,)
    return ", ".join(_value_of(value.function, value.argument) for value in values)


def _value_of(function: str, argument: str | None) -> str:
    """One value of a group in words."""
    return f"{function.replace('_', ' ')}{f' of {argument}' if argument else ''}"


@singledispatch
def _worded(part: object) -> str:
    return str(part)


@_worded.register
def _(part: Region) -> str:
    return part.holds()


@_worded.register
def _(part: Place) -> str:
    return f"({part.x:g}, {part.y:g})" if part.focal is None else part.focal


@_worded.register
def _(part: Nearest) -> str:
    return f"among the {part.k} nearest to {_worded(part.place)}"


@_worded.register
def _(part: ReverseNearest) -> str:
    return f"an object to which none is nearer than {_worded(part.place)}"


@_worded.register
def _(part: GroupNearest) -> str:
    places = ", ".join(map(_worded, part.places))
    return f"among the {part.k} with the least {part.total} of distances to {places}"


@_worded.register
def _(part: LayerJoin) -> str:
    if part.is_outer:
        return f"{_with_feature(part)}, or in none"
    return f"{'not ' if part.how == 'anti' else ''}{_with_feature(part)}"


def _with_feature(part: LayerJoin) -> str:
    kinds = f" of kind {' or '.join(part.kinds)}" if part.kinds else ""
    if part.predicate == "equals":
        return f"with {part.left} equal to {part.right} of a feature of {part.layer}{kinds}"
    tags = "".join(f" with {name} = {value}" for name, value in part.tags)
    if part.left is not None:
        tags += f" with {part.right} equal to its {part.left}"
    if part.predicate == "dwithin":
        return f"within {part.distance_m:g} m of a feature of {part.layer}{kinds}{tags}"
    border = " and not on its border" if part.predicate == "within" else ""
    return f"in a feature of {part.layer}{kinds}{tags}{border}"


@_worded.register
def _(part: PairJoin) -> str:
    within = f" within {part.distance_m:g} m" if part.distance_m is not None else ""
    same = f" with the same {', '.join(part.keys)}" if part.keys else ""
    who = "no other object" if part.how == "anti" else "another object"
    return f"beside {who}{within}{same}{', or beside none' if part.is_outer else ''}"


@_worded.register
def _(part: Window) -> str:
    return (
        f"in the last {part.seconds:g} s"
        if part.seconds is not None
        else f"among the last {part.tuples} fixes"
    )


def why_filtered(reason: str, value: float) -> str:
    """Why a position filter took a fix out, for people: "speed", 412.0 gives `implausible speed, 412 m/s`.

    Args:
        reason: as in the column `filtered` of `positions`.
        value: as in `filtered_value`: metres, or metres per second.
    """
    return _FILTERED.get(reason, f"{reason}, {{:.4g}}").format(value)


_FILTERED = {
    "accuracy": "its place is known to {:.4g} m only",
    "speed": "implausible speed, {:.6g} m/s",
    "distance": "it had moved {:.4g} m only",
    "within_accuracy": "it had moved {:.4g} m, less than the accuracies of both fixes",
}
