"""Queries that begin with what they would know, had they been registered before (docs/adr/0043).

    state of the shard      objects a b    query 0            answer (0: a)
    seed of `q`             objects b c    query 0 = q        answer (q: b c)
    afterwards              objects a b c  queries 0, 1 = q   answer (0: a) (q: b c)    + b backfilled, + c backfilled

A seed is a state with one query, of the very place of the log at which the query is registered, and what it has told up
to there, folded to members.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from st_common.errors import StateError
from st_common.operators.arrays.keys import MASK, SHIFT, unique
from st_common.operators.runtime.evaluate import Outcome
from st_common.operators.runtime.idle import clock_us
from st_common.operators.runtime.reshape import part_of, pending_of, renumbered
from st_common.operators.runtime.reshape_objects import joined_fixes
from st_common.operators.runtime.stored import state_from_blob
from st_common.operators.state.codec import from_blob, to_blob
from st_common.operators.state.component import NONE, Numbers
from st_common.operators.state.difference import Changed
from st_common.operators.state.memories import Memories
from st_common.operators.state.numbering import Numbering
from st_common.operators.state.registered import Registered
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.state.targets import Targets
from st_common.operators.turn.changes import SHARD_SCHEMA, TICK_RANK
from st_common.operators.turn.part import Counters

MEMBERS = pa.schema(
    [
        ("object", pa.string()),
        ("partner", pa.string()),
        ("since_ts", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
        ("fields", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
    ]
)
"""Who is in the answer of a seed's query, since when, and where it was then."""

_CAUSE = "backfilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What a query knows when it is registered.

    Attributes:
        state: all that a shard which has all objects remembers, with this query alone.
        members: who is in its answer, rows of `MEMBERS`.
    """

    state: State
    members: pa.Table

    def to_bytes(self) -> bytes:
        """The seed as bytes."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, MEMBERS) as writer:
            writer.write_table(self.members.select(MEMBERS.names).cast(MEMBERS))
        state = self.state.to_blob()
        both = np.frombuffer(state + sink.getvalue().to_pybytes(), np.uint8)
        return to_blob({"both": both}, {"state_bytes": len(state)})

    @staticmethod
    def from_bytes(data: bytes) -> "Seed":
        """The seed that `to_bytes` gave.

        Raises:
            StateError: its state is of another format.
        """
        arrays, meta = from_blob(data)
        both, cut = np.asarray(arrays["both"]), meta["state_bytes"]
        members = pa.ipc.open_stream(both[cut:].tobytes()).read_all()
        for name in MEMBERS.names[len(members.column_names) :]:
            # Seeds that were kept before members had a place.
            members = members.append_column(name, pa.nulls(len(members), pa.float64()))
        return Seed(state=state_from_blob(both[:cut].tobytes()), members=members)


def seeded(
    state: State, query: Registered, seed: Seed, position: int, settings: Settings
) -> Outcome:
    """What a registration with a seed does to a shard: the query is there with what it knows, and its members are told.

    Args:
        state: the state of the shard before the row.
        query: the query, as the row has it.
        seed: what it knows.
        position: the place of the row.
        settings: which shard this is.

    Raises:
        StateError: the seed is of another query.
    """
    mine = _as_last(state, _checked(query, seed), settings)
    own = part_of(mine, settings.shard, settings.shards)
    whole, new = _with(state, own)
    changed = Changed.since(state)
    changed.touched.append(new)
    delta = changed.until(whole)
    if delta is None:
        raise StateError(f"query {query.name!r} cannot be told as a change")
    members = seed.members if settings.shard == 0 else seed.members.slice(0, 0)
    at_us = clock_us(state, settings)
    rows = _rows(members, query, len(state.queries), position, at_us)
    return Outcome(delta=delta, changes=rows, counters=Counters())


def _checked(query: Registered, seed: Seed) -> State:
    known = [one for one in seed.state.queries if one.live]
    is_same = len(known) == 1 and (known[0].plan, known[0].layer_version) == (
        query.plan,
        query.layer_version,
    )
    if not is_same:
        raise StateError(
            f"what query {query.name!r} begins with was found for another plan",
            hint="drop it, and register it anew",
        )
    (number,) = (n for n, one in enumerate(seed.state.queries) if one.live)
    named = replace(known[0], name=query.name, version=query.version)
    queries = seed.state.queries.with_changed({number: named})
    return replace(seed.state, queries=queries)


def _as_last(state: State, seed: State, settings: Settings) -> State:
    """The seed with its query behind those of a state."""
    (number,) = (n for n, one in enumerate(seed.queries) if one.live)
    query_of = np.full(len(seed.queries), NONE)
    query_of[number] = len(state.queries)
    of_key = seed.of_key(settings.id_key)
    return replace(
        of_key,
        queries=state.queries.with_more([seed.queries[number]]),
        targets=Targets(query_of[seed.targets.query], seed.targets.partner),
        memories=seed.memories.renumbered({Numbers.QUERIES: query_of}),
    )


def _with(state: State, own: State) -> tuple[State, np.ndarray]:
    """A state with what a seed has beside it, and the numbers of objects that are new to it.

    Of an object that both know the state's last fix counts: they are the same, but where fixes were put into the order
    of their times, and later ones are known.
    """
    objects = state.of_key(own.objects.key).objects
    named = _objects_named_in(own)
    ids = own.objects.ids.take(pa.array(named))
    number = objects.find(own.objects.hashes[named], ids)
    missing = np.flatnonzero(number < 0)
    new = len(objects) + np.arange(len(missing))
    number[missing] = new
    object_of = np.full(len(own.objects), NONE)
    object_of[named] = number
    numbering = Numbering(state.partners, state.targets)
    theirs = renumbered(own, numbering, object_of)
    whole = replace(
        state,
        objects=objects.with_new(
            own.objects.hashes[named[missing]], ids.take(pa.array(missing))
        ),
        fixes=joined_fixes([state.fixes, own.fixes.take(named[missing])])
        if len(missing)
        else state.fixes,
        queries=own.queries,
        partners=numbering.partners,
        targets=numbering.targets,
        answer=unique(np.concatenate([state.answer, theirs.answer])),
        tick_answer=unique(np.concatenate([state.tick_answer, theirs.tick_answer])),
        memories=Memories.joined([state.memories, theirs.memories]),
        pending=pending_of([state, own], [np.arange(len(objects)), object_of]),
        memo=None,
    )
    return whole, new


def _objects_named_in(own: State) -> np.ndarray:
    return unique(
        np.concatenate(
            [
                own.answer >> SHIFT,
                own.tick_answer & MASK,
                own.memories.numbers(Numbers.OBJECTS),
                own.pending.objects,
            ]
        )
    )


def _rows(
    members: pa.Table, query: Registered, order: int, position: int, at_us: int
) -> pa.Table:
    """The members as changes by which they come in, at the row and at its time."""
    count = len(members)
    since_us = members["since_ts"].cast(pa.int64())
    same = {
        "position": position,
        "event_ts": at_us,
        "rank": TICK_RANK,
        "sign": 1,
        "query_order": order,
        "query_version": query.version,
        "layer_version": query.layer_version,
        "query": query.name,
        "cause": _CAUSE,
    }
    shown = ("object", "partner", "value", "fields", "x", "y")
    given = {name: members[name] for name in shown}
    columns = {
        name: pa.repeat(pa.scalar(value, pa.string()), count)
        if isinstance(value, str)
        else pa.repeat(pa.scalar(value, SHARD_SCHEMA.field(name).type), count)
        for name, value in same.items()
    }
    rows = pa.table({**columns, **given, "fix_ts": since_us})
    return rows.select(SHARD_SCHEMA.names).cast(SHARD_SCHEMA)
