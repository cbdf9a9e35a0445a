"""What a plan cannot be on its stream, apart from its expressions: clauses that exclude each other, areas off Earth."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from st_common.query.complaint import Complaint
from st_common.query.earth import complaints_of_places
from st_common.query.fence_checks import complaints_of_fence
from st_common.query.frame_checks import complaints_of_frame
from st_common.query.plain import is_plain
from st_common.query.plan import Plan
from st_common.query.transform_checks import complaints_of_transforms
from st_common.record import values_of
from st_common.regions.region import MovingRegion, Region

if TYPE_CHECKING:
    from st_common.settings import StreamSettings


def complaints(plan: Plan, stream: "StreamSettings") -> Iterator[Complaint]:
    """What is wrong with a plan on this stream."""
    if not is_plain(plan):
        yield from _of_clauses(plan, stream)
    if not stream.space.is_flat:
        yield from complaints_of_places(plan)
    if plan.by_ticks and not stream.moving:
        why = _why_ticks(plan)
        message = f"{why[1]} needs a stream of moving objects"
        yield Complaint(
            at=why[0],
            message=message,
            hint=f"stream {stream.name!r} is set to moving = false",
        )


def _of_clauses(plan: Plan, stream: "StreamSettings") -> Iterator[Complaint]:
    """What is wrong with clauses of a plan, or with two of them beside each other."""
    yield from _together(plan)
    yield from complaints_of_frame(plan)
    yield from complaints_of_fence(plan)
    yield from complaints_of_transforms(plan, space=stream.space)
    counts = Counter(name for name, _ in plan.columns) if plan.columns else {}
    for name in (name for name, count in counts.items() if count > 1):
        hint = (
            "names are the same in any case; give one of them another name: ... AS name"
        )
        yield Complaint(
            at="select", message=f"two columns are called {name!r}", hint=hint
        )


def complaints_of_area(region: Region) -> Iterator[Complaint]:
    """What is wrong with a region whatever stream it will be used on: nothing that is finite is refused."""
    values = [value for value in values_of(region).values() if isinstance(value, float)]
    if not all(math.isfinite(value) for value in values):
        yield Complaint(
            at="region", message="the numbers of an area are finite", hint=""
        )
    for wrong in region.wrong_anywhere():
        yield Complaint(at="region", message=wrong.message, hint=wrong.hint)


def _together(plan: Plan) -> Iterator[Complaint]:
    """Clauses that have no meaning beside each other."""
    if plan.neighbours is not None and (
        plan.join is not None or plan.pairs is not None
    ):
        yield Complaint(
            at="knn",
            message="KNN and JOIN exclude each other",
            hint="register one query for each",
        )
    if plan.window is not None:
        excluded = {
            "a moving INSIDE": isinstance(plan.inside, MovingRegion),
            "KNN": plan.neighbours is not None,
            "a JOIN of the stream with itself": plan.pairs is not None,
        }
        for what in (name for name, given in excluded.items() if given):
            hint = "a window counts fixes that qualified at their own time"
            yield Complaint(
                at="window", message=f"WINDOW and {what} exclude each other", hint=hint
            )
    if plan.valid_until:
        yield from _valid_until(plan)


def _valid_until(plan: Plan) -> Iterator[Complaint]:
    hint = "it says until when an object stays in the region of INSIDE"
    if plan.inside is None:
        yield Complaint(at="emit", message="WITH VALID UNTIL needs INSIDE", hint=hint)
    excluded = {
        "KNN": plan.neighbours is not None,
        "JOIN": plan.join is not None or plan.pairs is not None,
        "WINDOW": plan.window is not None,
        "an aggregate": plan.aggregate is not None,
    }
    if plan.inside is not None and plan.inside.no_until:
        excluded[plan.inside.no_until] = True
    for what in (name for name, given in excluded.items() if given):
        yield Complaint(
            at="emit",
            message=f"WITH VALID UNTIL and {what} exclude each other",
            hint=hint,
        )


def _why_ticks(plan: Plan) -> tuple[str, str]:
    """The clause because of which a query is judged at ticks, and what it is."""
    reasons = (
        (
            "inside",
            "a region that goes with an object",
            isinstance(plan.inside, MovingRegion),
        ),
        ("knn", "KNN", plan.neighbours is not None),
        ("layer", "a JOIN of the stream with itself", plan.pairs is not None),
        ("frame", "a window in brackets", plan.frame is not None),
        ("window", "WINDOW", plan.window is not None),
        ("select", "an aggregate", plan.aggregate is not None),
        ("emit", "WITH VALID UNTIL", plan.valid_until),
    )
    found = next(((at, what) for at, what, given in reasons if given), None)
    return found or ("select", "RSTREAM")
