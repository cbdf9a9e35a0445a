"""From a plan to the tree of its operators."""

from st_common.query.binding import columns_of
from st_common.query.plan import Plan
from st_common.query.tree.boxes import Compared, Transformed
from st_common.query.tree.detected import Detected
from st_common.query.tree.node import Column, Node
from st_common.query.tree.relational import Group, Project, Select, Source, Told
from st_common.query.tree.spatial import Inside, Near, Until, WithLayer, WithObjects
from st_common.query.tree.windows import Counting, Recent, Travelled
from st_common.settings import StreamSettings

_UNITS = {"elapsed_s": "s", "speed_mps": "m/s"}
_NEVER_NULL = frozenset({"object", "event_ts", "x", "y"})


def tree_of(plan: Plan, stream: StreamSettings | None = None) -> Told:
    """The operators of a plan; with the settings of its stream the columns of its rows are known."""
    source = Source(stream=plan.stream, fix_columns=_fix_columns(stream))
    rows = _of_windows(plan, source) if plan.frame else _of_objects(plan, source)
    return Told(input=_above(plan, rows), emit=plan.emit, order=plan.order)


def _fix_columns(stream: StreamSettings | None) -> tuple[Column, ...]:
    """The columns of every fix; none where the stream is not known."""
    if stream is None:
        return ()
    units = {**stream.units, **_UNITS}
    return tuple(
        Column(
            name=name,
            type=type_,
            unit=units.get(name, ""),
            nullable=name not in _NEVER_NULL,
        )
        for name, type_ in columns_of(stream.attributes)
    )


def _of_objects(plan: Plan, source: Source) -> Node:
    """The members of an answer about last fixes."""
    rows: Node = source
    if plan.where is not None:
        rows = Select(input=rows, where=plan.where)
    return _spatial(plan, rows, source)


def _of_windows(plan: Plan, source: Source) -> Node:
    """Fixes in windows: conditions are about these fixes, all that is spatial about which objects count now."""
    assert plan.frame is not None  # noqa: S101 - its one caller asks
    rows: Node = Travelled(input=source, frame=plan.frame)
    if plan.where is not None:
        rows = Select(input=rows, where=plan.where)
    who = _spatial(plan, source, source)
    return rows if who is source else Counting(input=rows, who=who)


def _spatial(plan: Plan, rows: Node, source: Source) -> Node:
    """Where objects are, from the region up to their neighbours."""
    if plan.inside is not None:
        rows = Inside(input=rows, region=plan.inside)
    if plan.transforms:
        rows = Transformed(input=rows, transforms=plan.transforms)
    if plan.compare is not None:
        rows = Compared(input=rows, compare=plan.compare)
    if plan.join is not None:
        rows = WithLayer(input=rows, join=plan.join)
    if plan.pairs is not None:
        rows = WithObjects(input=rows, other=source, join=plan.pairs)
    if plan.fence is not None:
        rows = Detected(input=rows, fence=plan.fence)
    if plan.neighbours is not None:
        rows = Near(input=rows, neighbours=plan.neighbours)
    return rows


def _above(plan: Plan, rows: Node) -> Node:
    """What becomes of the members of an answer."""
    if plan.window is not None:
        rows = Recent(input=rows, window=plan.window)
    if plan.aggregate is not None:
        rows = Group(input=rows, aggregate=plan.aggregate)
    if plan.columns:
        rows = Project(input=rows, selected=plan.columns)
    return Until(input=rows) if plan.valid_until else rows
