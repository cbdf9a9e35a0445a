"""What a home folder says about a plan, for `explain` (SPEC G10).

What reads tables is imported when there are tables: before a stream ran, `explain` waits for none of it.
"""

from dataclasses import replace

from st_common.config.home import DEFAULT_GROUP, Home
from st_common.config.stream import StreamSettings
from st_common.engine.predicate_order import read_order
from st_common.operations.status import read_status
from st_common.query.explain import (
    Estimates,
    Explanation,
    Running,
    explain,
    with_actual,
)
from st_common.query.group_names import full_name
from st_common.query.lookup import queries
from st_common.query.plan import Plan


def estimates_of(home: Home, stream: StreamSettings, plan: Plan) -> Estimates:
    """How many objects a stream has, and which shares of them a plan's conditions select, for `explain` (SPEC G10).

    Args:
        home: where the tables lie.
        stream: the settings of the plan's stream.
        plan: the plan.

    Returns:
        All unknown as long as no positions are archived.
    """
    from st_common import tables

    if not tables.exists(home.table("positions", stream.name)):
        return Estimates()
    from st_common.answers.shares import shares_of

    return shares_of(home, stream, plan)


def running_order(
    home: Home, stream: StreamSettings, name: str, plan: Plan
) -> Running | None:
    """The order in which the local engine ran a registered query last.

    Args:
        home: the home folder.
        stream: the settings of the query's stream.
        name: the query's name; "" for a plan that is not registered.
        plan: what `explain` explains; another plan of that name does not count.

    Returns:
        None when no order was chosen, before the query ran, and on Spark, where each shard chooses and says nothing.
    """
    rows = (
        [
            row
            for row in queries(home, [stream.name])
            if row.name == name and row.plan == plan
        ]
        if name
        else []
    )
    orders = (
        read_order(home.stream(stream.name), name, rows[0].version) if rows else None
    )
    if orders is None:
        return None
    return Running(
        **{part: orders[part] for part in ("order", "where", "space", "readings")},
        alike=orders.get("alike", 1),  # records of earlier engines lack it
    )


def caches_of(home: Home, stream: StreamSettings, plan: Plan) -> str | None:
    """What the caches of the plan's kind have cost on this stream so far, as a line for people; None without any."""
    status = read_status(home.stream(stream.name))
    if status is None:
        return None
    from st_common.operators.runtime.compiling import kind_of
    from st_common.operators.skeleton.cache_counts import lines_of

    return lines_of(status.caches).get(kind_of(plan) or "")


def explained(home: Home, stream: StreamSettings, name: str, plan: Plan) -> Explanation:
    """How a plan is carried out, with all that the home says about it.

    Args:
        home: the home folder.
        stream: the settings of the plan's stream.
        name: of its query, empty without one.
        plan: the plan.
    """
    explanation = explain(
        plan,
        name,
        tick_s=stream.tick_s,
        estimates=estimates_of(home, stream, plan),
        running=running_order(home, stream, name, plan),
        caches=caches_of(home, stream, plan),
        stream=stream,
    )
    return replace(explanation, tables=_tables(home, stream, plan))


def _tables(home: Home, stream: StreamSettings, plan: Plan) -> tuple[str, ...]:
    """The stream and the layer of a plan with their groups; none where both are in the group that nobody names."""
    groups: dict[str, str | None] = {stream.name: stream.group}
    if plan.join is not None:
        from st_common.layers.announce import layer_group
        from st_common.layers.table import newest_version

        layer = plan.join.layer
        is_loaded = newest_version(home, layer) is not None
        groups[layer] = layer_group(home, layer) if is_loaded else None
    if not set(groups.values()) - {DEFAULT_GROUP, None}:
        return ()
    return tuple(full_name(name, group) for name, group in groups.items())


def explained_by_counts(
    home: Home, stream: StreamSettings, name: str, plan: Plan
) -> Explanation:
    """How a query is carried out, with what is counted when it runs over all archived fixes, see `analyzed`.

    Args:
        home: the home folder.
        stream: the settings of the plan's stream.
        name: of its query, empty without one.
        plan: the plan; where it leaves the order of selection and region open, that of the engine is run.

    Raises:
        FairwayError: as `analyzed`.
    """
    from st_common.batch.analyzing import analyzed

    tree = explained(home, stream, name, plan)
    ordered = replace(plan, order=tree.order or plan.order)
    return with_actual(tree, plan, analyzed(home, stream, ordered, name))
