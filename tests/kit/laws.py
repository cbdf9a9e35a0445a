"""What every engine must hold to (docs/how-it-works.md), as functions over random cases."""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pyarrow as pa

from st_common.config.stream import AttributeType
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import delta_from_blob, state_from_blob
from st_common.operators.state.delta import Delta, apply
from st_common.operators.state.limits import Limits
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.operators.turn.part import Counters
from st_common.position import position_of
from tests.kit import oracle
from tests.kit.layer_tables import index_of
from tests.kit.oracle import Change, Control, Fix, Row, Rules
from tests.kit.oracle_rows import ATTRIBUTES, EXTENTS
from tests.kit.shapely_layer import ShapelyLayer
from tests.kit.strategies import Case, Course, Segmentation
from tests.kit.user_filters import DECLARED

Told = tuple[
    int,
    str,
    int,
    int | None,
    str,
    str | None,
    int,
    str,
    int,
    int,
    float | None,
    str | None,
    float | None,
    float | None,
]

_VALUE = 10  # the place of the value in what is told
_ARROW = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "bool": pa.bool_(),
}


def told_by_oracle(changes: Iterable[Change]) -> list[Told]:
    """The oracle's changes without `seq`, sorted: what an engine must have told, whatever order it has in one row."""
    return sorted(
        (
            (
                c.position,
                c.query,
                c.query_version,
                c.layer_version,
                c.object,
                c.partner,
                c.sign,
                c.cause,
                c.event_us,
                c.fix_us,
                _value(c.value),
                _fields(c.fields),
                c.x,
                c.y,
            )
            for c in changes
        ),
        key=repr,
    )


def told(changes: pa.Table, order: Mapping[int, int] | None = None) -> list[Told]:
    """An engine's changes in the same form; `order` maps its positions to places in the case's rows."""
    rows = changes.to_pylist()
    return sorted(
        (
            (
                order[r["position"]] if order else r["position"],
                r["query"],
                r["query_version"],
                r["layer_version"],
                r["object"],
                r["partner"],
                r["sign"],
                r["cause"],
                _us(r["event_ts"]),
                _us(r["fix_ts"]),
                _value(r["value"]),
                _fields(r["fields"]),
                r["x"],
                r["y"],
            )
            for r in rows
        ),
        key=repr,
    )


def _us(stamp: datetime) -> int:
    return round(stamp.timestamp() * 1e6)


def _value(value: float | None) -> float | None:
    """To a microsecond where it is a time; values of aggregates on the grid are exact."""
    return None if value is None else round(value, 6)


def _fields(fields: str | None) -> str | None:
    """A JSON object by its values: numbers are numbers, however they are written, to 9 digits behind the point."""
    if fields is None:
        return None
    values = {name: _part(value) for name, value in json.loads(fields).items()}
    return json.dumps(values, sort_keys=True)


def _part(value: Any) -> Any:
    if isinstance(value, list):
        return [_part(one) for one in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return round(float(value), 9) if is_number else value


def assert_alike(
    told: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]
) -> None:
    """What was told is what brute force tells; values may differ by 0.01 %, as geodesics do."""
    assert [_without_value(row) for row in told] == [
        _without_value(row) for row in expected
    ]
    for value, other in zip(
        (row[_VALUE] for row in told), (row[_VALUE] for row in expected), strict=True
    ):
        assert (value is None) == (other is None)
        assert value is None or math.isclose(value, other, rel_tol=1e-4)


def _without_value(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:_VALUE] + row[_VALUE + 1 :]


def settings_of(
    rules: Rules,
    *,
    shard: int = 0,
    shards: int = 1,
    margin: float = 0.0,
    refills: bool = True,
) -> Settings:
    """The step's settings for the oracle's rules, in one of some shards, with caches of some width."""
    return Settings(
        lateness_us=rules.lateness_us,
        silence_us=rules.silence_us,
        tick_us=rules.tick_us,
        space=GLOBE if rules.geographic else PLANE,
        window_rows=rules.window_rows,
        margin=margin,
        refills=refills,
        shard=shard,
        shards=shards,
        filters=DECLARED,
    )


def _parts(case: Case, segmentation: Segmentation) -> list[list[tuple[int, Row]]]:
    """The rows of each segment with their numbers: a segment has fixes or control rows, never both."""
    parts: list[list[tuple[int, Row]]] = []
    cuts = {*segmentation.cuts, *(start for start, _ in case.rules.filters)}
    for number, row in enumerate(case.rows):
        other_kind = parts and (
            isinstance(row, Fix) != isinstance(parts[-1][-1][1], Fix)
        )
        if not parts or number in cuts or other_kind:
            parts.append([])
        parts[-1].append((number, row))
    return parts


def packets_of(
    case: Case,
    segmentation: Segmentation,
    shards: int,
    following: Collection[int] | None = None,
) -> tuple[list[list[Packet]], dict[int, int]]:
    """The case as packets, per segment one per shard; and the place in the case's rows of each position.

    The shards `following` get all fixes, the others their own; None: all shards do.
    """
    parts = _parts(case, segmentation)
    segments: list[list[Packet]] = []
    order: dict[int, int] = {}
    for segment, part in enumerate(parts):
        order |= {
            position_of(segment, at): number for at, (number, _) in enumerate(part)
        }
        fixes = [row for _, row in part if isinstance(row, Fix)]
        if fixes:
            segments.append(
                pack(
                    segment,
                    _fixes(fixes),
                    rows=len(fixes),
                    rejects=0,
                    shards=shards,
                    following=following,
                    limits=_limits_at(case.rules, part[0][0]),
                )
            )
        else:
            payload = "\n".join(
                json.dumps(dict(row.row)) for _, row in part if isinstance(row, Control)
            ).encode()
            segments.append([control_packet(segment, payload)] * shards)
    return segments, order


def _limits_at(rules: Rules, position: int) -> Limits | None:
    """By which limits the rows from a place of the case on are filtered, as packets have it."""
    limits = [one for start, one in rules.filters if start <= position]
    return Limits(**asdict(limits[-1])) if limits else None


def _fixes(rows: Sequence[Fix]) -> pa.Table:
    return pa.table(
        {
            "row": pa.array(range(len(rows)), pa.int32()),
            "object": pa.array([row.object for row in rows]).dictionary_encode(),
            "event_ts": pa.array([row.event_us for row in rows], pa.int64()),
            "x": pa.array([row.x for row in rows], pa.float64()),
            "y": pa.array([row.y for row in rows], pa.float64()),
            "gone": pa.array([row.gone for row in rows], pa.bool_()),
            **{
                name: pa.array([row.attributes.get(name) for row in rows], _ARROW[kind])
                for name, kind in _attributes_of(rows).items()
            },
        }
    )


def _attributes_of(rows: Sequence[Fix]) -> dict[str, AttributeType]:
    """Those of random streams, and what elements of these rows have for an extent."""
    said = {name for row in rows for name in row.attributes}
    extents = {name: kind for name, kind in EXTENTS.items() if name in said}
    return {**ATTRIBUTES, **extents}


def batched(
    segments: Sequence[list[Packet]], batches: Sequence[int]
) -> list[list[list[Packet]]]:
    """Segments in batches of the given sizes; what is left is one more."""
    out, at = [], 0
    for size in [*batches, len(segments)]:
        if at < len(segments):
            out.append(list(segments[at : at + size]))
            at += size
    return out


def run_steps(
    case: Case,
    segmentation: Segmentation,
    *,
    shards: int = 1,
    through_bytes: bool = False,
    margin: float = 0.0,
    refills: bool = True,
    restarts: Collection[int] = (),
    layer_of: LayerOf | None = None,
) -> tuple[pa.Table, Counters, dict[int, int]]:
    """The case through the pure step, shard by shard and batch by batch; with caches where there is a `margin`.

    With `through_bytes` every packet, delta and state is written and read back on its way; with `restarts` those of
    some batches (their numbers) are, so that what is kept in memory goes on in others. `layer_of` gives other layers
    than those of which nobody knows what changed.
    """
    segments, order = packets_of(case, segmentation, shards)
    layer_of = layer_of or _layer_of(case)
    states = [State() for _ in range(shards)]
    told_changes, counters = [], Counters()
    for number, batch in enumerate(batched(segments, segmentation.batches)):
        results, is_written = [], through_bytes or number in restarts
        for shard in range(shards):
            read = [packets[shard] for packets in batch]
            if is_written:
                read = [Packet.from_blob(packet.to_blob()) for packet in reversed(read)]
            of = settings_of(
                case.rules, shard=shard, shards=shards, margin=margin, refills=refills
            )
            done = step(states[shard], read, of, layer_of)
            states[shard] = (
                _rebuilt(states[shard], done.deltas) if is_written else done.state
            )
            results.append(done.changes)
            counters += done.counters
        told_changes.append(settled(results))
    return pa.concat_tables(told_changes), counters, order


def run_course(
    case: Case, course: Course, layer_of: LayerOf | None = None
) -> tuple[pa.Table, Counters, dict[int, int]]:
    """The case through the pure step, in the way that a course says."""
    return run_steps(
        case,
        course.cut,
        shards=course.shards,
        margin=course.margin,
        refills=course.refills,
        restarts=course.restarts,
        layer_of=layer_of,
    )


def holds(
    case: Case, course: Course, layer_of: LayerOf | None = None
) -> list[tuple[Any, ...]]:
    """The law: the step tells what brute force tells, and counts what it counts; gives back the changes in order."""
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    changes, counters, order = run_course(case, course, layer_of)
    assert told(changes, order) == told_by_oracle(expected.changes)
    assert (counters.late, counters.double) == (expected.late, expected.double)
    reasons = Counter(reason for reason, _ in expected.filtered.values())
    assert counters.filtered == reasons
    return in_row_order(changes, order)


def _layer_of(case: Case) -> LayerOf:
    """Layers of the plane by shapely; those of the globe are indexes, for shapely knows no metres."""
    if case.rules.geographic:
        indexes = {
            key: index_of(features, space=GLOBE)
            for key, features in case.layers.items()
        }
        return lambda layer, version: indexes[layer, version]
    return lambda layer, version: ShapelyLayer(case.layers[layer, version])


def _rebuilt(state: State, deltas: Sequence[Delta]) -> State:
    state = state_from_blob(state.to_blob())
    for delta in deltas:
        state = apply(state, delta_from_blob(delta.to_blob()))
    return state_from_blob(state.to_blob())


def in_row_order(changes: pa.Table, order: Mapping[int, int]) -> list[tuple[Any, ...]]:
    """The changes in their one order, with `seq` per row of the case."""
    return [
        (
            order[r["position"]],
            r["query"],
            r["object"],
            r["partner"],
            r["sign"],
            r["cause"],
            r["event_ts"],
            r["seq"],
            r["value"],
            r["fields"],
            r["x"],
            r["y"],
        )
        for r in changes.to_pylist()
    ]
