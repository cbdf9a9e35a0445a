"""Control rows: queries that come, change and go, and layers that are loaded anew (SPEC X4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, repeat
from types import MappingProxyType

import numpy as np

from st_common.controls.reading import Kind, chosen
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import (
    AboutQuery,
    Clock,
    ControlRow,
    Drop,
    End,
    Export,
    Fail,
    Follow,
    LayerVersion,
    Reading,
    Register,
    Registration,
    Replace,
)
from st_common.errors import LogError
from st_common.operators.events.agenda import Final
from st_common.operators.events.timeline import Rows
from st_common.operators.matching.layer import LayerOf
from st_common.operators.runtime.evaluate import Outcome, Run, evaluate
from st_common.operators.runtime.seeds import Seed, seeded
from st_common.operators.runtime.swap import swap
from st_common.operators.state.delta import Delta
from st_common.operators.state.fixes import NEVER
from st_common.operators.state.registered import Queries, Registered
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA
from st_common.operators.turn.part import Counters
from st_common.operators.turn.swapping import Swap
from st_common.position import position_of
from st_common.query.control import plan_of, plans_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.query.replaced_fence import keeps_visits
from st_common.uncollected import uncollected


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Control rows of one kind that stand one behind the other, and are done together.

    Attributes:
        rows: the rows, at least one.
        position: int64[n], where each is in the log.
        seed: of one registration with a seed, what its query knows.
    """

    rows: Sequence[ControlRow]
    position: np.ndarray
    seed: bytes | None = None


def parts(
    segment: int,
    rows: Sequence[ControlRow],
    seeds: Mapping[str, bytes] = MappingProxyType({}),
) -> Iterator[Part]:
    """The rows of a segment in order, cut into what can be done at once.

    Registrations, other areas, drops and failures that stand behind each other are done together, all else row by row:

        register register drop clock clock     ->  [register register] [drop] [clock] [clock]

    Args:
        segment: its number in the log.
        rows: all of its rows.
        seeds: what queries know that are registered in it, by their names.

    Raises:
        LogError: a row names a seed that is not among these.
    """
    position = position_of(segment, np.arange(len(rows)))
    if isinstance(rows, Rectangles):
        yield Part(rows=rows, position=position)
        return
    for kind, group in groupby(range(len(rows)), key=lambda at: _alike(rows[at])):
        numbers = list(group)
        if kind == (Register, True):
            yield from (_seeded_part(rows[n], position[n], seeds) for n in numbers)
            continue
        together = kind[0] in (Register, Follow, Drop, Fail)
        for some in _each_once(rows, numbers) if together else [[n] for n in numbers]:
            cut = slice(some[0], some[-1] + 1)
            yield Part(rows=rows[cut], position=position[cut])


def _seeded_part(row: ControlRow, position: int, seeds: Mapping[str, bytes]) -> Part:
    query = row.query if isinstance(row, Register) else ""
    if query not in seeds:
        raise LogError(
            f"query {query!r}, registered at position {position}, knows of the log what nobody reads here",
            hint="queries that were registered FROM somewhere count where no other queries or layers are tried",
        )
    return Part(rows=(row,), position=np.array([position]), seed=seeds[query])


def _alike(row: ControlRow) -> tuple[type[ControlRow], bool]:
    """What rows that are done together have in common; those that follow an area and a layer have other causes."""
    if isinstance(row, Register):
        return Register, row.seed is not None
    return type(row), isinstance(row, Follow) and row.layer is not None


def _each_once(
    rows: Sequence[ControlRow], numbers: Sequence[int]
) -> Iterator[list[int]]:
    """Rows about queries in as few runs as name no query twice: what the first row did is there for the second."""
    some: dict[str, int] = {}
    for number, row in chosen(rows[numbers[0] : numbers[-1] + 1], AboutQuery):
        if row.query in some:
            yield list(some.values())
            some = {}
        some[row.query] = numbers[0] + number
    yield list(some.values())


def control(state: State, part: Part, settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of one of the `parts`: queries are swapped, the clock moves, or nothing changes.

    Args:
        state: the state before the rows; it is not changed.
        part: the rows.
        settings: what of the stream's settings decides answers, and which shard this is.
        layer_of: gives a layer in a version.

    Raises:
        LogError: a plan that this version does not know.
    """
    first, at = part.rows[0], int(part.position[0])
    if isinstance(first, Clock | End):
        run = _clock_run(state, at, first, settings)
        return evaluate(state, run, settings, layer_of)
    if isinstance(first, Export | Reading):
        return _nothing(state)  # what engines and decoders do there changes no answer
    if part.seed is not None:
        (query,) = _registered(state, part, settings)
        return seeded(state, query, Seed.from_bytes(part.seed), at, settings)
    return swap(state, _swap_of(state, part, settings), settings, layer_of)


def _nothing(state: State) -> Outcome:
    return Outcome(
        delta=Delta(next_segment=state.next_segment, max_event=state.max_event),
        changes=SHARD_SCHEMA.empty_table(),
        counters=Counters(),
        memo=state.memo,
    )


def _swap_of(state: State, part: Part, settings: Settings) -> Swap:
    """What the rows of a part do to the queries."""
    first, at = part.rows[0], int(part.position[0])
    match first:
        case Register():
            return _register(state, part, settings)
        case Replace():
            return _replace(state, first, part, settings)
        case Follow():
            cause = "area" if first.layer is None else "layer"
            return _follow(state, part, settings, cause)
        case Drop():
            dropped = [(at, row.query) for at, row in _placed(part, Drop)]
            return _ended(state, dropped, "dropped")
        case Fail():
            return _fail(state, part)
        case LayerVersion():
            return _layer(state, first, at)
    raise LogError(f"the step does not know what {first.op!r} does to queries")


def _placed(part: Part, kind: type[Kind]) -> list[tuple[int, Kind]]:
    """The rows of a part, which are all of one kind, each with its position in the log."""
    return [(int(part.position[at]), row) for at, row in chosen(part.rows, kind)]


def _clock_run(
    state: State, position: int, row: Clock | End, settings: Settings
) -> Run:
    """A run without fixes that moves the clock: to a time, or at the end of a replay past every fix that is held."""
    if isinstance(row, Clock):
        highest = row.ts_us
    else:
        releases = state.max_event != NEVER and settings.lateness_us > 0
        # + 1: the clock must be past the newest fix, not at it.
        passed = state.newest_event + settings.lateness_us + 1 if releases else NEVER
        highest = max(state.max_event, passed)
    ints, floats = np.empty(0, np.int64), np.empty(0)
    rows = Rows(
        position=ints,
        object=ints,
        ts=ints,
        x=floats,
        y=floats,
        gone=np.empty(0, np.int8),
        clock_position=np.array([position]),
        clock_max=np.array([highest]),
    )
    final = (
        Final(position=position, ts=state.newest_event)
        if isinstance(row, End) and state.max_event != NEVER
        else None
    )
    return Run(rows=rows, next_segment=state.next_segment, final=final)


def _register(state: State, part: Part, settings: Settings) -> Swap:
    """The registrations of a part: queries behind the others, judged anew from all last fixes."""
    start = len(state.queries)
    with uncollected():
        queries = state.queries.with_more(_registered(state, part, settings))
    numbers = np.arange(start, len(queries))
    position = np.zeros(len(queries), np.int64)
    position[numbers] = part.position
    return Swap(
        queries=queries,
        layers=state.layers,
        before=numbers[:0],
        after=numbers,
        position=position,
        minus="dropped",
        plus="registered",
        keeps=False,
    )


def _registered(state: State, part: Part, settings: Settings) -> list[Registered]:
    """The queries that registrations begin; their plans have the unit of the coordinates, those of the log metres.

    Of a layer that one joins it has the version that the log has named last, else the one that was there when it was
    registered.
    """
    return [
        Registered(
            name=name,
            version=version,
            plan=in_coordinates(plan, settings.unit_m),
            layer_version=None
            if plan.join is None
            else state.layers.get(plan.join.layer, layer_version),
            since=state.max_event,
            position=position,
        )
        for position, (name, version, layer_version, plan) in zip(
            part.position.tolist(), _asked(part), strict=False
        )
    ]


def _asked(part: Part) -> Iterator[tuple[str, int, int | None, Plan]]:
    """Of each registration the query's name and version, the layer's version, and the plan."""
    rows = part.rows
    if isinstance(rows, Rectangles):
        yield from zip(
            rows.names, rows.versions, repeat(None), plans_of(rows), strict=False
        )
        return
    for number, row in chosen(rows, Registration):
        plan = plan_of(row, int(part.position[number]))
        yield row.query, row.version, row.layer_version, plan


def _live(queries: Queries) -> dict[str, int]:
    return {query.name: number for number, query in enumerate(queries) if query.live}


def _fail(state: State, part: Part) -> Swap:
    """Queries that cannot be judged; one that was replaced since the row was meant for its older version goes on."""
    live = _live(state.queries)
    meant = [
        (at, row.query)
        for at, row in _placed(part, Fail)
        if row.query in live and state.queries[live[row.query]].version == row.version
    ]
    return _ended(state, meant, "failed")


def _ended(state: State, rows: list[tuple[int, str]], cause: str) -> Swap:
    """Queries that end, by name, each at its position in the log; those that are not live are passed over."""
    live, queries = _live(state.queries), state.queries
    ended: dict[int, Registered] = {}
    position = np.zeros(len(queries), np.int64)
    for at, name in rows:
        # Taken out: a second row about the query finds it ended.
        number = live.pop(name, None)
        if number is not None:
            ended[number] = replace(queries[number], live=False)
            position[number] = at
    return Swap(
        queries=queries.with_changed(ended),
        layers=state.layers,
        before=np.array(list(ended), np.int64),
        after=np.empty(0, np.int64),
        position=position,
        minus=cause,
        plus="registered",
        keeps=False,
    )


def _replace(state: State, row: Replace, part: Part, settings: Settings) -> Swap:
    at = int(part.position[0])
    dropped = _ended(state, [(at, row.query)], "dropped")
    added = _register(state, part, settings)
    # The new version is judged where the old one is: what stays in the answer is told by nobody.
    shard = next((state.queries[old].dealt for old in dropped.before), None)
    new = [replace(one, dealt=shard) for one in added.queries[len(state.queries) :]]
    queries = dropped.queries.with_more(new)
    return Swap(
        queries=queries,
        layers=state.layers,
        before=dropped.before,
        after=added.after,
        position=np.full(len(queries), at),
        minus="replaced",
        plus="registered",
        keeps=False,
        takes_over=_takes_over(queries, dropped.before, added.after),
    )


def _takes_over(queries: Queries, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether visits of the query before go on in the one after: a fence at the same border, in the same features."""
    return all(
        queries[old].layer_version == queries[new].layer_version
        and keeps_visits(queries[old].plan, queries[new].plan)
        for old, new in zip(before.tolist(), after.tolist(), strict=False)
    ) and len(before) == len(after)


def _follow(state: State, part: Part, settings: Settings, cause: str) -> Swap:
    """Queries whose region is another one; what is no longer live, or another version by now, is passed over."""
    live, queries = _live(state.queries), state.queries
    position = np.zeros(len(queries), np.int64)
    followed: dict[int, Registered] = {}
    for at, row in _placed(part, Follow):
        number = live.get(row.query)
        if number is None or queries[number].version != row.version:
            continue
        plan = in_coordinates(plan_of(row, at), settings.unit_m)
        if replace(plan, inside=None) != replace(queries[number].plan, inside=None):
            raise LogError(
                f"the row at position {at} gives query {row.query!r} more than another region",
                hint="restore the segment from a copy",
            )
        followed[number] = replace(queries[number], plan=plan)
        position[number] = at
    numbers = np.array(list(followed), np.int64)
    return Swap(
        queries=queries.with_changed(followed),
        layers=state.layers,
        before=numbers,
        after=numbers,
        position=position,
        minus=cause,
        plus=cause,
        keeps=True,
    )


def _layer(state: State, row: LayerVersion, position: int) -> Swap:
    queries = state.queries
    on_layer = {
        n: replace(q, layer_version=row.version)
        for n, q in enumerate(queries)
        if q.live and q.plan.join is not None and q.plan.join.layer == row.layer
    }
    numbers = np.array(list(on_layer), np.int64)
    return Swap(
        queries=queries.with_changed(on_layer),
        layers={**state.layers, row.layer: row.version},
        before=numbers,
        after=numbers,
        position=np.full(len(queries), position),
        minus="layer",
        plus="layer",
        keeps=True,
        layer=row.layer,
    )
