"""What queries do when an area that they name has another region: CREATE OR REPLACE AREA (docs/adr/0032)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from st_common.query.area_store import NamedArea
from st_common.query.control import QueryRow
from st_common.query.plan import Plan
from st_common.regions.moving_combined import joined_region
from st_common.regions.region import MovingRegion, Region


def following(
    rows: Iterable[QueryRow], old: NamedArea, region: Region
) -> Iterator[QueryRow]:
    """The control rows by which queries follow an area to another region, for the newest rows of all queries.

    A query follows that names the area and has its region: it goes on in the same version, by a row `follow`. One whose
    answer cannot go on over another region (see `_goes_on`) begins anew in its next version, by a row `replace`.
    Queries that were dropped or failed stay as they are.
    """
    for row in sorted(rows, key=lambda row: row.name):
        if row.state != "registered" or row.plan is None or not _names(row, old):
            continue
        plan = _moved(row.plan, old.region, region)
        if plan != row.plan:
            yield moved_row(row, plan, layer=None)


def moved_row(row: QueryRow, plan: Plan, *, layer: str | None) -> QueryRow:
    """The row by which a query goes over to a plan with other regions: of features of a `layer`, or of areas (None).

    Raises:
        ValueError: the query has no plan.
    """
    if row.plan is None:
        raise ValueError(f"query {row.name!r} has no plan")
    moved = replace(row, plan=plan, position=-1, layer_version=None)
    if _goes_on(row.plan, plan):
        return replace(moved, op="follow", layer=layer)
    return replace(moved, op="replace", version=row.version + 1, layer=None)


def _names(row: QueryRow, area: NamedArea) -> bool:
    return area.name.casefold() in {name.casefold() for name in row.areas}


def _moved(plan: Plan, old: Region, new: Region) -> Plan:
    """The plan with the new region wherever it has the old one."""
    inside = None if plan.inside is None else _exchanged(plan.inside, old, new)
    if plan.frame is None:
        return replace(plan, inside=inside)
    regions = tuple(_exchanged(region, old, new) for region in plan.frame.regions)
    return replace(plan, inside=inside, frame=replace(plan.frame, regions=regions))


def _exchanged(region: Region, old: Region, new: Region) -> Region:
    """The new region in the place of the old one, also where that is a part of AND, OR, NOT."""
    if joined_region(region) == old:
        return new
    moved = region.with_parts(lambda part: _exchanged(part, old, new))
    return joined_region(moved)


def _goes_on(plan: Plan, moved: Plan) -> bool:
    """Whether only those who leave or come need be told of.

    Not where more was told than who is in (VALID UNTIL), where a window holds fixes of the old region, nor where a
    region that stood still goes with an object from now on, or the other way round.
    """
    moves = [isinstance(one.inside, MovingRegion) for one in (plan, moved)]
    return plan.frame == moved.frame and not plan.valid_until and moves[0] == moves[1]
