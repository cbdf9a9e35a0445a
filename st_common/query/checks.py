"""What a plan cannot be on its stream, apart from its expressions: clauses that exclude each other, areas off Earth."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from st_common.geometry.space import Space
from st_common.query.cell_checks import complaints_of_cells
from st_common.query.complaint import Complaint
from st_common.query.earth import complaints_of_places, complaints_of_plane
from st_common.query.extents import complaints_of_extents, complaints_of_middles
from st_common.query.fence_checks import complaints_of_fence
from st_common.query.frame_checks import complaints_of_frame
from st_common.query.incident_checks import complaints_of_incident
from st_common.query.near_columns import names_near
from st_common.query.neighbours import Nearest
from st_common.query.outer import columns_below, complaints_of_outer
from st_common.query.pair_columns import NEAREST, names_pair, pair_names
from st_common.query.plain import is_plain
from st_common.query.plan import Plan
from st_common.query.relations import complaints_of_layer
from st_common.query.transform_checks import (
    complaints_of_transforms,
    complaints_of_user_filters,
)
from st_common.query.tree.growing import tree_of
from st_common.query.tree.node import complaints_of_tree, walk_all
from st_common.record import values_of
from st_common.regions.forecast import Forecast
from st_common.regions.region import MovingRegion, Region

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings

_PLACE = ("x", "y")
_OF_INCIDENT = (*_PLACE, "started")


def complaints(plan: Plan, stream: "StreamSettings") -> Iterator[Complaint]:
    """What is wrong with a plan on this stream."""
    if not is_plain(plan):
        yield from complaints_of_tree(tree_of(plan))
        yield from complaints_of_values(plan, stream.space)
        yield from complaints_of_user_filters(plan, stream.filters)
        yield from complaints_of_cells(plan, stream.space)
        yield from complaints_of_outer(plan, columns_below(plan, stream.attributes))
    yield from _of_order(plan)
    yield from complaints_of_layer(plan, stream)
    extent = stream.columns.extent
    yield from complaints_of_middles(
        plan, stream.name, extent, is_layer=stream.layer is not None
    )
    if not stream.space.is_flat:
        yield from complaints_of_places(plan)
    if plan.by_ticks and not stream.moving:
        first = next(node for node in walk_all(tree_of(plan)) if node.ticks_itself)
        yield Complaint(
            at=first.at,
            message=f"{first.noun} needs a stream of moving objects",
            hint=f"stream {stream.name!r} is set to moving = false",
        )


def _of_order(plan: Plan) -> Iterator[Complaint]:
    """An order of tests where there is none to choose: nothing would follow from it."""
    if plan.order == "auto":
        return
    parts: dict[str, object] = {"a window in brackets": plan.frame}
    if plan.order == "space_first":
        is_moving = isinstance(plan.inside, MovingRegion)
        parts |= {
            "KNN": plan.neighbours,
            "a region that goes with an object": plan.inside if is_moving else None,
            "pairs of objects": plan.pairs,
        }
    for name in (name for name, part in parts.items() if part is not None):
        yield Complaint(
            at="options",
            message=f"plan = {plan.order!r} and {name} exclude each other",
            hint="leave the option out: the condition of WHERE comes first there"
            if plan.order == "space_first"
            else "leave the option out: there is one order alone",
        )


def all_complaints(plan: Plan, stream: "StreamSettings") -> Iterator[Complaint]:
    """What is wrong with a plan on this stream, also what has a meaning in degrees alone."""
    if stream.space.is_flat and is_plain(plan):
        return  # nothing about a rectangle can be wrong on a plane
    yield from complaints(plan, stream)
    if stream.space.is_flat:
        yield from complaints_of_plane(plan)


def complaints_of_values(plan: Plan, space: Space) -> Iterator[Complaint]:
    """What is wrong with parts of a plan in themselves; what stands above what is judged by its tree."""
    if plan.frame is not None:
        yield from complaints_of_frame(plan.frame)
    if plan.fence is not None:
        yield from complaints_of_fence(plan.fence)
    if plan.incident is not None:
        yield from complaints_of_incident(plan.incident, plan)
    yield from complaints_of_transforms(plan.transforms, space=space)
    counts = Counter(name for name, _ in plan.columns) if plan.columns else {}
    for name in (name for name, count in counts.items() if count > 1):
        hint = (
            "names are the same in any case; give one of them another name: ... AS name"
        )
        yield Complaint(
            at="select", message=f"two columns are called {name!r}", hint=hint
        )
    yield from _told_already(plan)
    yield from _beside_features(plan)
    yield from _without_place(plan)
    yield from _beside_forecast(plan)
    yield from complaints_of_extents(plan)


def _beside_features(plan: Plan) -> Iterator[Complaint]:
    """Tags and distances where features are judged without them, or rows are kept while they change."""
    if plan.join is None:
        return
    if any(names_pair(text) for _, text in plan.columns):
        yield from _with_columns_of_tags(plan)
    if not names_pair(plan.where or ""):
        return
    if any(name in NEAREST for name in pair_names(plan.where or "")):
        message = "nearest_x and nearest_y are columns, and no conditions"
        hint = "distance(t, r) says how far the nearest point is"
        yield Complaint(at="where", message=message, hint=hint)
    for name in _without_tags(plan):
        yield Complaint(
            at="where",
            message=f"a condition on tags or the distance of features and {name} exclude each other",
            hint="a kind, and a tag that equals a text, choose features there",
        )


def _without_place(plan: Plan) -> Iterator[Complaint]:
    """`rank()` and `distance()` where rows are no members of KNN, or are kept while their ranks change."""
    if not any(names_near(text) for _, text in plan.columns):
        return
    if not isinstance(plan.neighbours, Nearest):
        yield Complaint(
            at="select",
            message="rank() and distance() need KNN (k, ..)",
            hint="SELECT rank(), distance() FROM taxis KNN ('M', 3, 'car7')",
        )
    joined = [plan.joined_with.noun] if plan.joined_with and plan.gives_pairs else []
    for name in [*joined, *_without_tags(plan)]:
        yield Complaint(
            at="select",
            message=f"rank() and distance() and {name} exclude each other",
            hint="they are of the nearest objects of now, as changes tell of them",
        )


def _beside_forecast(plan: Plan) -> Iterator[Complaint]:
    """What does not ask of velocities cannot choose among those who will enter a region."""
    if plan.inside is not None and _nests_forecast(plan.inside):
        yield Complaint(
            at="inside",
            message="WILL ENTER and AND, OR, NOT of regions exclude each other",
            hint="register one query for each region",
        )
    if not isinstance(plan.inside, Forecast):
        return
    parts = {
        "KNN": plan.neighbours,
        plan.joined_with.noun if plan.joined_with else "JOIN": plan.joined_with,
        "DETECT": plan.fence,
        "FOR": plan.incident,
        "WINDOW": plan.window,
        "a window in brackets": plan.frame,
        "USING": plan.transforms or None,
        "COMPARE WITH": plan.compare,
    }
    for name in (name for name, part in parts.items() if part is not None):
        yield Complaint(
            at="inside",
            message=f"WILL ENTER and {name} exclude each other",
            hint="a forecast stands beside conditions, columns and aggregates",
        )


def _nests_forecast(region: Region) -> bool:
    """Whether a forecast is a part of another region, or is of one that has no border."""
    return any(
        isinstance(part, Forecast)
        or (isinstance(region, Forecast) and bool(part.no_border))
        or _nests_forecast(part)
        for part in region.operands
    )


def _with_columns_of_tags(plan: Plan) -> Iterator[Complaint]:
    for name in _without_tags(plan):
        yield Complaint(
            at="select",
            message=f"columns of tags or the distance of features and {name} exclude each other",
            hint="changes name the feature: its tags are in the layer",
        )


def _without_tags(plan: Plan) -> list[str]:
    """What a plan has that knows features without their tags, in words."""
    parts = {
        "DETECT": plan.fence,
        "FOR": plan.incident,
        "a window in brackets": plan.frame,
    }
    return [name for name, part in parts.items() if part is not None]


def _told_already(plan: Plan) -> Iterator[Complaint]:
    """Columns that would stand in the place of what every row of a fence or an incident says itself."""
    if plan.fence is None and plan.incident is None:
        return
    what, own = ("DETECT", _PLACE) if plan.incident is None else ("FOR", _OF_INCIDENT)
    columns = list(plan.columns)
    if plan.incident is not None and plan.incident.worst is not None:
        columns.append((plan.incident.worst.name, ""))
    for name, text in columns:
        is_itself = name.lower() in _PLACE and text.lower() == name.lower()
        if name.lower() in own and not is_itself:
            yield Complaint(
                at="select",
                message=f"every row of {what} has {name.lower()!r} of its own",
                hint="give the column another name: ... AS name",
            )


def complaints_of_area(region: Region) -> Iterator[Complaint]:
    """What is wrong with a region whatever stream it will be used on: nothing that is finite is refused."""
    values = [
        value
        for leaf in region.leaves()
        for value in values_of(leaf).values()
        if isinstance(value, float)
    ]
    if not all(math.isfinite(value) for value in values):
        yield Complaint(
            at="region", message="the numbers of an area are finite", hint=""
        )
    for wrong in region.wrong_anywhere():
        yield Complaint(at="region", message=wrong.message, hint=wrong.hint)
