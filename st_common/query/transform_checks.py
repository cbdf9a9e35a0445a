"""What the transformations of a query cannot be (BBoxDB); what they cannot stand beside is said by nodes."""

import math
from collections.abc import Iterable, Iterator

from st_common.config.filters import (
    BUILT_IN,
    Filters,
    filter_method,
    filter_named,
    filter_names,
)
from st_common.errors import ConfigError
from st_common.geometry.space import Space
from st_common.query.comparing import ENLARGEMENTS, Transform
from st_common.query.complaint import Complaint
from st_common.query.filters import NAMES, NEAR, STRICT, complaint
from st_common.query.plan import Plan
from st_common.query.problem import did_you_mean

_FURTHEST_M = 20_000_000.0  # half the way around the Earth
_LIKE = {
    "factor": "enlarge_factor(0.5)",
    "value": "enlarge_value(0.01)",
    "metres": "enlarge(50 m)",
}


def complaints_of_transforms(
    transforms: Iterable[Transform], *, space: Space
) -> Iterator[Complaint]:
    """What is wrong with transformations on a stream in this space, each by itself."""
    for step in transforms:
        if step.kind in ENLARGEMENTS:
            yield from _enlargement(step, space=space)
        elif step.kind == "filter":
            yield from _filter(step)
        elif step.kind == "key" and not step.text:
            yield Complaint(
                at="using", message="expected the id of an object", hint="key('car7')"
            )


def _enlargement(step: Transform, *, space: Space) -> Iterator[Complaint]:
    most = math.inf if space.is_flat or step.kind != "metres" else _FURTHEST_M
    if not (math.isfinite(step.amount) and 0 <= step.amount <= most):
        message = f"an enlargement is 0 or more, and not {step.amount:g}"
        if step.amount > 0:
            message = f"{step.amount:g} is further than half around the Earth"
        yield Complaint(at="using", message=message, hint=_LIKE[step.kind])


def complaints_of_user_filters(plan: Plan, declared: Filters) -> Iterator[Complaint]:
    """What is wrong with the filters that are none of ours, on a stream whose settings declare some."""
    for name in (step.name or "" for step in plan.transforms if step.kind == "filter"):
        if name in NAMES:
            continue
        try:
            settings = filter_named(name, declared)
            if settings is not None:
                filter_method(settings, joins=plan.join is not None)
        except ConfigError as error:
            yield Complaint(at="using", message=error.message, hint=error.hint or "")
            continue
        if settings is None:
            known = (*NAMES, *filter_names(declared))
            hint = did_you_mean(name, (*known, *BUILT_IN))
            hint = hint or f"known filters: {', '.join(known)}"
            yield Complaint(at="using", message=f"unknown filter {name!r}", hint=hint)


def _filter(step: Transform) -> Iterator[Complaint]:
    name = step.name or ""
    if (name == NEAR) != (step.amount > 0):
        message = f"filter {name!r} takes a distance above 0, and {STRICT} none: {step.amount:g} m"
        if name != NEAR:
            message = f"filter {name!r} takes no distance, and not {step.amount:g} m"
        hint = f"filter('{NEAR}', 'custom value', 5 m)"
        yield Complaint(at="using", message=message, hint=hint)
    if name in NAMES and (why := complaint(name, step.text)) is not None:
        yield Complaint(
            at="using",
            message=f"filter {name!r}: {why}",
            hint=f"filter('{name}', 'custom value')",
        )
