"""A fence in the place of another: whose visits go on, and whose begin anew (SPEC X3, docs/adr/0032)."""

from st_common.query.plan import Plan


def keeps_visits(before: Plan, after: Plan) -> bool:
    """Whether visits of the fence before are visits of the one after: where they began, DWELL, rows of fixes.

    They are where both tell the same events at the same border: region or join, condition, events, the time of DWELL.
    Columns and what counts as a crossing may be others. Not where the fence after says that it begins anew.
    """
    if before.fence is None or after.fence is None or after.fence.restart:
        return False
    return _border(before) == _border(after) and (
        (before.fence.events, before.fence.dwell_s)
        == (after.fence.events, after.fence.dwell_s)
    )


def _border(plan: Plan) -> tuple[object, ...]:
    return plan.inside, plan.join, plan.where
