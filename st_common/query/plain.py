"""Queries that ask for a rectangle that stands still and nothing else but a condition: most of a million are.

Nothing in such a plan can exclude anything else in it, and its JSON is written without looking at every part that a
plan may have. All else goes the long way; both say the same, which a law holds. Rows of such plans are read as columns:
see `st_common.controls.rectangles`.
"""

import json
import math
from json.encoder import encode_basestring_ascii as quoted

from st_common.query.plan import VERSION, Plan
from st_common.regions.registry import Box


def is_plain(plan: Plan) -> bool:
    """Whether a plan has a rectangle that stands still, perhaps a condition, and no other part."""
    return (
        type(plan.inside) is Box
        and plan.neighbours is None
        and plan.join is None
        and plan.pairs is None
        and plan.window is None
        and plan.frame is None
        and plan.fence is None
        and plan.incident is None
        and plan.compare is None
        and plan.aggregate is None
        and not plan.transforms
        and not plan.columns
        and not plan.valid_until
        and plan.order == "auto"
        and plan.emit == "changes"
        and plan.outer is None
    )


def plan_text(plan: Plan) -> str:
    """The plan as JSON without blanks."""
    box = plan.inside
    if (
        not is_plain(plan)
        or type(box) is not Box
        or not math.isfinite(box.minx + box.miny + box.maxx + box.maxy)
    ):
        return json.dumps(plan.to_json(), separators=(",", ":"))
    where = "" if plan.where is None else f',"where":{quoted(plan.where)}'
    return (
        f'{{"v":{VERSION},"stream":{quoted(plan.stream)},"inside":{{"kind":"box","minx":{box.minx!r},'
        f'"miny":{box.miny!r},"maxx":{box.maxx!r},"maxy":{box.maxy!r}}}{where}}}'
    )
