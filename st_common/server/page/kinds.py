"""Of which kind a query is, as the page groups queries."""

from st_common.query.plan import Plan

_PARTS = (
    ("outer", "rows of a query"),
    ("incident", "incident"),
    ("fence", "fence"),
    ("aggregate", "aggregate"),
    ("frame", "window"),
    ("neighbours", "knn"),
    ("pairs", "pairs"),
    ("join", "join"),
)


def kind_of(plan: Plan) -> str:
    """The kind: the first part of the plan that decides what its answer is; `range` or `filter` where none does.

    the k nearest inside a circle -> knn    a circle -> range    WHERE speed > 3 alone -> filter
    """
    for part, kind in _PARTS:
        if getattr(plan, part) is not None:
            return kind
    return "filter" if plan.inside is None else "range"
