"""What queries do when a layer was loaded anew that has their region as a feature (docs/adr/0032).

plan of q      INSIDE FEATURE (parks, 'w1')      the surface of w1 in some version
parks, anew    w1 has another surface            q goes over to it, by a row `follow` with the layer
               w1 is gone, or covers nothing     q fails, and says why
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from st_common.query.area_change import moved_row
from st_common.query.area_store import NamedArea
from st_common.query.checks import all_complaints
from st_common.query.control import QueryRow
from st_common.query.plan import Plan
from st_common.regions.region import Region
from st_common.regions.registry import Area

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings

FeatureOf = Callable[[str, str], Area | None]
"""The surface of a feature of a layer in the newest version; None: there is none, or it covers nothing."""


class GoneError(Exception):
    """A layer has no such feature, or none that covers anything."""

    def __init__(self, layer: str, fid: str) -> None:
        super().__init__(f"layer {layer} has no feature {fid!r} that covers anything")


def newest_of(region: Region, feature_of: FeatureOf) -> Region:
    """The surface of now of a region that is a feature, or of each that it is made of; any other region as it is.

    Raises:
        GoneError: the feature is gone.
    """
    if not isinstance(region, Area):
        return region.with_parts(lambda part: newest_of(part, feature_of))
    if region.feature is None:
        return region
    surface = feature_of(*region.feature)
    if surface is None:
        raise GoneError(*region.feature)
    return surface


def with_newest(plan: Plan, feature_of: FeatureOf) -> Plan:
    """The plan with the surfaces of now.

    Raises:
        GoneError: a feature is gone.
    """
    inside, frame = plan.inside, plan.frame
    if inside is not None:
        plan = replace(plan, inside=newest_of(inside, feature_of))
    if frame is not None and frame.regions:
        regions = tuple(newest_of(one, feature_of) for one in frame.regions)
        plan = replace(plan, frame=replace(frame, regions=regions))
    return plan


def is_behind(row: QueryRow, feature_of: FeatureOf) -> bool:
    """Whether a registered query has the surface of a feature that another has taken the place of, or none."""
    if row.state != "registered" or row.plan is None:
        return False
    try:
        return with_newest(row.plan, feature_of) != row.plan
    except GoneError:
        return True


def gone_over(
    row: QueryRow, feature_of: FeatureOf, stream: "StreamSettings"
) -> QueryRow:
    """The row by which a query that `is_behind` goes over to the surfaces of now, or fails.

    Raises:
        ValueError: the query has no plan.
    """
    if row.plan is None:
        raise ValueError(f"query {row.name!r} has no plan")
    try:
        plan = with_newest(row.plan, feature_of)
    except GoneError as gone:
        return _failed(row, str(gone))
    wrong = next(iter(all_complaints(plan, stream)), None)
    if wrong is not None:
        return _failed(row, f"it cannot follow its layer: {wrong.message}")
    return moved_row(row, plan, layer=_changed(row.plan, plan))


def newest_areas(
    named: list[NamedArea], feature_of: FeatureOf
) -> Iterator[tuple[NamedArea, NamedArea]]:
    """The areas that are features with another surface by now, before and after.

    Who names one whose feature is gone is refused then; the area stays, for the feature may come back.
    """
    for area in named:
        try:
            newest = replace(area, region=newest_of(area.region, feature_of))
        except GoneError:
            continue
        if newest != area:
            yield area, newest


def _changed(before: Plan, after: Plan) -> str | None:
    """The layer of the first region that is another one."""
    pairs = zip(_regions(before), _regions(after), strict=True)
    areas = (new for old, new in pairs if old != new and isinstance(new, Area))
    return next((area.layer for area in areas), None)


def _regions(plan: Plan) -> list[Region]:
    """Those that its regions are made of: another surface of one is as many as it was."""
    inside = () if plan.inside is None else (plan.inside,)
    framed = plan.frame.regions if plan.frame is not None else ()
    return [leaf for region in (*inside, *framed) for leaf in region.leaves()]


def _failed(row: QueryRow, why: str) -> QueryRow:
    return replace(
        row, op="fail", plan=None, text=None, owner=None, layer_version=None, why=why
    )
