"""Cells that do not fit the coordinates of a stream."""

from collections.abc import Iterator

from st_common.geometry.space import Space
from st_common.query.cells import GRID, H3
from st_common.query.complaint import Complaint
from st_common.query.grammar.statements import expression_of
from st_common.query.plan import Plan
from st_common.query.plan_expressions import expressions_of

_CLAUSES = {"columns": "select", "aggregate": "select"}


def complaints_of_cells(plan: Plan, space: Space) -> Iterator[Complaint]:
    """Cells that the coordinates of a stream do not have."""
    name, right = (H3, GRID) if space.is_flat else (GRID, H3)
    where = "on a plane" if space.is_flat else "in degrees"
    size = "500" if space.is_flat else "9"
    for at, text in expressions_of(plan):
        if name in text and any(
            node.name == name for node in expression_of(text).walk()
        ):
            yield Complaint(
                at=_CLAUSES.get(at, at),
                message=f"{name} is not for coordinates {where}",
                hint=f"{right}({size})",
            )
