"""A SELECT FROM a layer, answered once: the step over the features of one version, with the query there before them.

    SELECT name FROM stations WHERE kind = 'fuel' INTERSECTS CIRCLE (24.9, 60.1, 2 km)

    files      those that can hold features of this kind in the box around the circle
    records    their features, all at one time
    step       the one that runs over streams: what it tells is the answer

An answer is a function of the version alone. The stream of the layer's features tells the same of every version
(`engine.layer_feed`), for it is the same step over the same records.
"""

import time
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Clock, Register
from st_common.controls.writing import to_bytes
from st_common.decode import decode
from st_common.engine.local import layers_of
from st_common.engine.packets import step_settings
from st_common.errors import QueryError
from st_common.formats.arrow_rows import packed
from st_common.history.fold import fold
from st_common.layers.announce import required_version
from st_common.layers.index import EDGES
from st_common.layers.relation import OWN, records_of
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.grammar.statements import expression_of
from st_common.query.lowering.expression import conjuncts
from st_common.query.past import Past
from st_common.query.plan import Plan
from st_common.regions.combined_shapes import bounds_of
from st_common.regions.region import StillRegion
from st_common.tables.pruning import Filters

_QUERY = "asked"  # its name, while it runs


def searched(
    home: Home, stream: StreamSettings, plan: Plan, past: Past | None
) -> pa.Table:
    """Which features of the newest version of a layer a query has, and what it shows of them. Nothing is written.

    Args:
        home: where the table of the layer lies.
        stream: the settings of the stream of its features (`query.relations`).
        plan: what is asked of them.
        past: None; a layer keeps no times.

    Returns:
        Rows as `history.fold` gives them, of the query "asked", in no order; all are members since now.

    Raises:
        LayerError: there is no such layer.
        QueryError: it asks about a time, or cannot be judged on the features.
        TransientError: the table cannot be read now.
    """
    if past is not None:
        raise QueryError(
            f"{stream.layer!r} is a layer, and a layer has versions and no times",
            hint="leave AS OF and BETWEEN out: the newest version is asked",
        )
    version = required_version(home, stream.layer or stream.name)
    at_us, tick_us = time.time_ns() // 1000, round(1_000_000 * stream.tick_s)
    parts = parts_asked(plan, stream)
    rows = [records_of(home, stream, version, at_us=at_us, part=one) for one in parts]
    registration = Register(query=_QUERY, version=1, plan=plan.to_json())
    # The query is there before the features, at a time before theirs; a tick lies between them and the end.
    begin, end = (Clock(ts_us=at_us + ticks * tick_us) for ticks in (-2, 2))
    packets = [
        control_packet(0, to_bytes(begin)),
        control_packet(1, to_bytes(registration)),
        _packet(2, _once(pa.concat_tables(rows)), stream, at_us),
        control_packet(3, to_bytes(end)),
    ]
    done = step(State(), packets, step_settings(stream), layers_of(home, stream))
    for failure in done.failures:
        raise QueryError(f"the query cannot be judged: {failure.why}")
    members = fold(settled([done.changes]))
    since = members.schema.get_field_index("since_ts")
    stamps = pa.repeat(pa.scalar(at_us, pa.int64()), len(members))
    field = members.schema.field(since)
    return members.set_column(since, field, stamps.cast(field.type))


def _packet(
    number: int, records: pa.Table, stream: StreamSettings, at_us: int
) -> Packet:
    """The records of features as a segment has them."""
    decoded = decode(b"".join(packed(records)), stream, arrival_us=at_us)
    (packet,) = pack(
        number,
        decoded.fixes,
        rows=decoded.rows,
        rejects=len(decoded.rejects),
        shards=1,
        id_key=stream.id_key,
    )
    return packet


def _once(records: pa.Table) -> pa.Table:
    """Each feature once, also where several parts have it."""
    _, first = np.unique(records["fid"].to_numpy(), return_index=True)
    return records.take(pa.array(first))


def parts_asked(plan: Plan, stream: StreamSettings) -> list[Filters]:
    """What rows of the layer's table must satisfy to be in an answer: filters, of which a row satisfies some at least.

    A region that crosses 180 degrees asks of two boxes. What cannot be told by columns of the table, as a tag, is not
    among them; neither is anything where the nearest are asked for, or where who is not in the answer counts.

        kind = 'fuel' INSIDE (1, 2, 3, 4)   ->   [[kind = fuel, minx <= 3, miny <= 4, maxx >= 1, maxy >= 2]]

    Args:
        plan: what is asked.
        stream: the settings of the stream of the features.
    """
    of_labels = list(_labels(plan))
    if not isinstance(plan.inside, StillRegion):
        return [of_labels]
    bounds = np.asarray(bounds_of(plan.inside, stream.space), float).reshape(1, -1)
    boxes, _ = stream.space.wrap(bounds)
    sides = zip(EDGES, ("<=", "<=", ">=", ">="), strict=True)
    meets = [(name, sign, (place + 2) % 4) for place, (name, sign) in enumerate(sides)]
    return [
        [*of_labels, *((name, sign, float(box[at])) for name, sign, at in meets)]
        for box in boxes
    ]


def _labels(plan: Plan) -> "list[tuple[str, str, Any]]":
    """What a condition says of the fid and the kind alone, as filters."""
    if plan.where is None:
        return []
    filters = []
    for one in conjuncts(expression_of(plan.where)):
        bare = one.unnest()
        named = {"object": "fid"} | {name: name for name in OWN}
        column = bare.this if isinstance(bare, exp.EQ | exp.In) else None
        name = named.get(column.name) if isinstance(column, exp.Column) else None
        values = _texts(bare)
        if name is not None and values:
            filters.append((name, "in", values))
    return filters


def _texts(condition: exp.Expr) -> list[str]:
    """The texts that a column must be one of; none where it is compared with something else."""
    is_one = isinstance(condition, exp.EQ)
    values = [condition.expression] if is_one else condition.expressions
    is_text = all(isinstance(one, exp.Literal) and one.is_string for one in values)
    return [one.this for one in values] if is_text else []
