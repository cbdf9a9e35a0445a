"""The one step that every engine runs: packets in log order to changes, and what the shard's state becomes.

    packets     7 fixes   8 fixes   9 control: register, drop   10 fixes
    runs       [7         8       ] [9                        ] [10    ]      fixes that follow each other are one
    outcomes    1                    register, drop, its end     1            a delta and changes each

Every outcome is applied before the next run is judged. So a batch may end behind any packet, and the changes are the
same: fixes of two segments are judged at once or one after the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from st_common.errors import LogError, StateError
from st_common.operators.events.packet import Packet
from st_common.operators.events.timeline import Rows
from st_common.operators.expressions.failures import noting
from st_common.operators.expressions.filters.users import declared_filters
from st_common.operators.matching.guarded import guarded
from st_common.operators.matching.layer import LayerOf
from st_common.operators.position_filter.filter import Filtered
from st_common.operators.runtime.controls import control, parts
from st_common.operators.runtime.evaluate import Outcome, Run, evaluate
from st_common.operators.runtime.failed import Failure, failed_queries
from st_common.operators.skeleton.cache_counts import Caches, summed
from st_common.operators.state.delta import Delta, apply
from st_common.operators.state.fixes import Attributes
from st_common.operators.state.intern import hashes_of
from st_common.operators.state.limits import LimitSpans, spans_after
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA, ordered_by_position
from st_common.operators.turn.part import Counters
from st_common.position import position_of
from st_common.uncollected import uncollected

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a batch does to a shard.

    Attributes:
        state: the state after it.
        deltas: those that lead there, in order.
        changes: rows of `SHARD_SCHEMA`, in no order (see `changes.settled`).
        counters: what was counted.
        failures: queries that cannot be judged any more: whoever owns the log writes a row `fail` for each.
        caches: by kind of query what caches cost.
        filtered: which fixes were stored and change nothing, a value for each delta.
        late: int64, rows of the log with fixes of own objects that came too late to change an answer, in no order.
    """

    state: State
    deltas: tuple[Delta, ...]
    changes: pa.Table
    counters: Counters
    failures: tuple[Failure, ...] = ()
    caches: Caches = field(default_factory=dict)
    filtered: tuple[Filtered, ...] = ()
    late: np.ndarray = field(default_factory=lambda: _NONE)


@uncollected()
def step(
    state: State, packets: Iterable[Packet], settings: Settings, layer_of: LayerOf
) -> Step:
    """Folds a batch of packets into a state: the one step that every engine runs.

    However the log is cut into batches, the changes are the same (SPEC X1).

        state, [packet 7, packet 8]  ->  state after 8, deltas, changes, counters

    Args:
        state: the state before the batch; it is not changed, so that a failed batch can be tried again.
        packets: this shard's, of the segments that come next, in any order; they are sorted first.
        settings: what of the stream's settings decides answers, and which shard this is.
        layer_of: gives a layer in a version.

    Raises:
        LogError: a segment is missing or comes twice.
        StateError: the state's ids are hashed by another key.
        ConfigError: a query names a filter of users that is not here.
    """
    outcomes = []
    state = _keyed(state, settings)
    failures: dict[Failure, None] = {}
    readable = guarded(layer_of)
    for packet_run in _runs(_in_order(state, packets)):
        with noting() as noted, declared_filters(settings.filters):
            for outcome in _outcomes(state, packet_run, settings, readable):
                outcomes.append(outcome)
                state = replace(apply(state, outcome.delta), memo=outcome.memo)
                failures |= dict.fromkeys(failed_queries(state.queries, noted))
    told = [outcome.changes for outcome in outcomes if len(outcome.changes)]
    changes = pa.concat_tables([*told, SHARD_SCHEMA.empty_table()])
    return Step(
        state=state,
        deltas=tuple(outcome.delta for outcome in outcomes),
        changes=ordered_by_position(changes, state.queries) if told else changes,
        counters=sum((outcome.counters for outcome in outcomes), Counters()),
        failures=tuple({(one.query, one.version): one for one in failures}.values()),
        caches=summed(outcome.caches for outcome in outcomes),
        filtered=tuple(outcome.filtered for outcome in outcomes),
        late=np.concatenate([_NONE, *(outcome.late for outcome in outcomes)]),
    )


def _keyed(state: State, settings: Settings) -> State:
    """The state with its ids known to be hashed by the settings' key.

    Raises:
        StateError: they are hashed by another: every object would be taken for a new one.
    """
    # One id is enough: under two keys its hashes do not agree by chance.
    key, first = settings.id_key, state.objects.hashes[:1]
    if not np.array_equal(first, hashes_of(state.objects.ids.slice(0, 1), key)):
        raise StateError(
            "the ids of the state are hashed by another key than the stream's",
            hint="restore the stream's `topology.json`: it holds the key",
        )
    return state.of_key(key)


def _in_order(state: State, packets: Iterable[Packet]) -> list[Packet]:
    """The packets by segment, after it is sure that none is missing and none comes twice."""
    ordered = sorted(packets, key=lambda packet: packet.segment)
    expected = state.next_segment
    for packet in ordered:
        if packet.segment != expected:
            what = "is missing" if packet.segment > expected else "comes twice"
            raise LogError(
                f"segment {min(packet.segment, expected)} {what}",
                hint="the log must be dense and in order",
            )
        expected += packet.segments
    return ordered


def _runs(packets: list[Packet]) -> Iterator[list[Packet]]:
    """Data packets that follow each other are one run; a control packet is one by itself."""
    for _, group in groupby(
        packets, key=lambda packet: packet.segment if packet.controls else -1
    ):
        yield list(group)


def _outcomes(
    state: State, packets: list[Packet], settings: Settings, layer_of: LayerOf
) -> Iterator[Outcome]:
    """What a run of data packets does, or part by part what a control packet does; then the segment is done."""
    packet = packets[0]
    if not packet.controls:
        yield evaluate(state, _run(state, packets), settings, layer_of)
        return
    for part in parts(packet.segment, packet.controls, packet.seeds):
        outcome = control(state, part, settings, layer_of)
        yield outcome
        state = replace(apply(state, outcome.delta), memo=outcome.memo)
    end = Delta(next_segment=packet.segment + 1, max_event=state.max_event)
    yield Outcome(
        delta=end,
        changes=SHARD_SCHEMA.empty_table(),
        counters=Counters(),
        memo=state.memo,
    )


def _run(state: State, packets: list[Packet]) -> Run:
    """The packets' fixes as rows in log order, their objects numbered; unknown ones from the state's number on."""
    numbers, ids, hashes = _numbered(state, packets)
    position, clock = (
        [p.positions() for p in packets],
        [p.clock_positions() for p in packets],
    )
    rows = Rows(
        position=np.concatenate(position),
        object=np.concatenate(numbers),
        clock_position=np.concatenate(clock),
        clock_max=np.concatenate([p.clock_max for p in packets]),
        ts=np.concatenate([p.ts for p in packets]),
        x=np.concatenate([p.x for p in packets]),
        y=np.concatenate([p.y for p in packets]),
        gone=np.concatenate([p.gone for p in packets]),
        attributes=_attributes(packets),
    )
    return Run(
        rows=rows,
        next_segment=packets[-1].segment + packets[-1].segments,
        object_ids=ids,
        object_hashes=hashes,
        limits=_spans(state.limits, packets),
    )


def _spans(spans: LimitSpans, packets: list[Packet]) -> LimitSpans:
    """By which limits fixes are filtered, up to the end of these packets."""
    for packet in packets:
        spans = spans_after(spans, position_of(packet.segment, 0), packet.limits)
    return spans


def _attributes(packets: list[Packet]) -> Attributes:
    """The packets' attributes, one after the other; null where a packet lacks one that another has."""
    names = dict.fromkeys(name for packet in packets for name in packet.attributes)
    out = {}
    for name in names:
        kind = next(p.attributes[name].type for p in packets if name in p.attributes)
        out[name] = pa.concat_arrays(
            [
                p.attributes[name].cast(kind, safe=False)
                if name in p.attributes
                else pa.nulls(len(p.ts), kind)
                for p in packets
            ]
        )
    return out


def _numbered(
    state: State, packets: list[Packet]
) -> tuple[list[np.ndarray], pa.Array, np.ndarray]:
    """The object numbers of each packet's fixes, and the ids and hashes of the objects that are new."""
    interner, counts = state.objects, [len(packet.hashes) for packet in packets]
    hashes = np.concatenate([packet.hashes for packet in packets])
    ids = pa.concat_arrays([packet.objects.cast(pa.string()) for packet in packets])
    known = interner.find(hashes, ids)
    missing = np.flatnonzero(known < 0)
    # Several packets may have the same new object: it gets its number by the first of them.
    new = ids.take(pa.array(missing)).dictionary_encode()
    codes = new.indices.to_numpy(zero_copy_only=False)
    known[missing] = len(interner) + codes
    _, first = np.unique(codes, return_index=True)
    of_packets = np.split(known, np.cumsum(counts)[:-1])
    numbers = [of[p.code] for of, p in zip(of_packets, packets, strict=True)]
    return numbers, new.dictionary, hashes[missing[first]]
