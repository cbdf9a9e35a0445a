"""Histories of servers that die, lose power and cannot write: posts, keys, listeners, two servers on one home.

A history is a seed. Clients post with and without keys, make requests again, hang up; others listen, and resume behind
the last id that they had; servers are killed, end and begin, the disk is full, or fails at any step, engines follow the
log meanwhile. In the end:

    what was acknowledged is in the log where it was told, also behind each power cut
    with a key it is there once, without one once for each time it was sent
    a key's answer is the same each time, and no other request is stored under it
    what was refused, or failed, is there as a whole or not at all
    no request fails while nothing is broken, whatever failed before
    who listens has heard each change of the table once, in order, since he began
"""

from collections import Counter
from dataclasses import dataclass
from errno import EDQUOT, EIO, EMFILE, ENOSPC
from functools import partial
from random import Random

from st_common.errors import FencedError, LogError
from st_common.formats.said_before import said_before
from st_common.log.packing import pack
from st_common.position import position_of
from st_common.query.control import QueryRow, encoded
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from tests.kit.log_writer import HEADER, settings_of
from tests.kit.oracle import Rules
from tests.kit.simulated import Actor, World
from tests.kit.simulated_disk import Faults
from tests.kit.simulated_server import SERVER, Ear, Request, Traffic, served
from tests.kit.simulated_stream import SECOND_US, STREAM, Machine, calm

_EMPTY = "," * (len(HEADER) - 4)
_BOXES = {"west": (0, 0, 4, 8), "all": (0, 0, 8, 8)}
_TURNS = 4_000
"""After so many turns nothing is broken any more."""
_CODES = (ENOSPC, EIO, EMFILE, EDQUOT)
_BREAKS = (
    *("kill", "kill", "torn", "torn", "cut"),
    *("fault", "fault", "fault", "full", "end"),
)
_INTO_TURNS = 200
_CUT_IN = 200
"""In so many turns at most, after a server has left what is not durable, the power is cut."""
_YOUNG_US = 300_000
_HOURS_US = 1000 * 3600 * SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a history was: what happened in it."""

    seed: int
    kills: int
    cuts: int
    faults: int
    taken: int
    again: int
    reused: int
    resumed: int
    heard: int
    ended: int


def live(seed: int) -> Served:
    """One history.

    Raises:
        AssertionError: something was lost, told twice, or refused without a reason.
    """
    world = World(seed)
    rng = world.rng
    machine = Machine.of(world, settings_of(STREAM, Rules()))
    machine.system = machine.tables._system = type(machine.system)(world)
    machine.disk.faults = faults = Faults(SERVER)
    traffic = Traffic(machine, faults)
    requests = _requests(rng)
    traffic.wanted = list(requests)
    traffic.ears = [Ear(rng.choice((None, *_BOXES))) for _ in range(rng.randint(0, 3))]
    with served(machine, most_waiting=rng.choice((3, 1000))):
        rows = [encoded(_row(name, box)) for name, box in _BOXES.items()]
        machine.log().append(b"".join(rows), arrival_us=world.now_us, control=True)
        counts = _broken(machine, traffic, requests)
        _ended(machine, traffic, requests)
        _judge(machine, traffic, requests)
        for ear in traffic.ears:
            _judge_ear(traffic, ear)
    return Served(
        seed=seed,
        kills=counts["kill"] + counts["torn"],
        cuts=counts["cut"],
        faults=faults.count,
        taken=traffic.told["taken"],
        again=traffic.told["again"],
        reused=traffic.told["reused"],
        resumed=sum(ear.resumed for ear in traffic.ears),
        heard=sum(len(ear.heard) for ear in traffic.ears),
        ended=sum(ear.ended for ear in traffic.ears),
    )


def _row(name: str, box: tuple[int, int, int, int]) -> QueryRow:
    inside = Box(minx=box[0], miny=box[1], maxx=box[2], maxy=box[3])
    return QueryRow(
        name=name,
        version=1,
        op="register",
        stream=STREAM,
        position=0,
        arrival_us=0,
        plan=Plan(stream=STREAM, inside=inside),
        text="",
        owner="t",
    )


def _requests(rng: Random) -> list[Request]:
    """Requests in the order in which their clients first make them; some share a key, some have nothing to read."""
    made: list[Request] = []
    keys: list[str] = []
    for number in range(rng.randint(3, 14)):
        key = None if rng.random() < 0.4 else f"k{number}"
        if key is not None and keys and rng.random() < 0.2:
            key = keys[-1]
        keys += [] if key is None else [key]
        is_good = rng.random() < 0.9
        objects = [f"r{number}-{row}" for row in range(rng.randint(1, 3))]
        lines = [_line(rng, one, number, is_good=is_good) for one in objects]
        body = f"{','.join(HEADER)}\n{''.join(lines)}".encode()
        made.append(Request(key, body, tuple(objects) if is_good else ()))
    return made


def _line(rng: Random, name: str, number: int, *, is_good: bool) -> str:
    at_us = (1_700_000_000 + number) * SECOND_US
    place = f"{rng.randint(0, 8)},{rng.randint(0, 8)}" if is_good else "here,there"
    return f"{name},{at_us},{place}{_EMPTY}\n"


def _broken(
    machine: Machine, traffic: Traffic, requests: list[Request]
) -> Counter[str]:
    """Lets servers, engines and clients run, and breaks what can break."""
    world, rng, faults = machine.world, machine.world.rng, traffic.faults
    counts: Counter[str] = Counter()
    danger = rng.choice((0.0, 0.005, 0.02, 0.05))
    patience = rng.choice((0.0, 0.7, 0.95))
    servers, packing = rng.choice((1, 2, 2)), rng.choice((0.0, 0.002, 0.01))
    has_engine = bool(traffic.ears)
    actor: Actor | None = None
    for _ in range(_TURNS):
        if machine.cut_in == 1 or rng.random() < danger:
            what = "cut" if machine.cut_in == 1 else rng.choice(_BREAKS)
            counts[what] += 1
            _break_one(machine, traffic, what)
            if what == "cut":
                _judge_told(machine, requests)
        elif faults.is_full and rng.random() < 0.02:
            faults.is_full = False
        machine.cut_in = max(0, machine.cut_in - 1)
        traffic.returned(requests)
        _revive(machine, traffic, servers, has_engine=has_engine)
        if rng.random() < packing:
            world.start("packer", partial(_pack, machine))
        if len(traffic.done) == len(requests) and rng.random() < 0.01:
            break
        living = world.living()
        if actor not in living or rng.random() > patience:
            actor = rng.choice(living)
        world.turn(actor)
    return counts


def _revive(
    machine: Machine, traffic: Traffic, servers: int, *, has_engine: bool
) -> None:
    """What is desired runs again: so many servers, and an engine where somebody listens."""
    names = [one.name for one in machine.world.living()]
    if names.count(SERVER) < servers:
        machine.world.start(SERVER, traffic.serve)
    if has_engine and "engine" not in names:
        machine.world.start("engine", machine.engine)


def _pack(machine: Machine) -> None:
    """Packs what has lain for a while: nobody stands in the middle of storing it any more."""
    pack(machine.log(), before_us=machine.world.now_us - _YOUNG_US)


def _break_one(machine: Machine, traffic: Traffic, what: str) -> None:
    world, rng, faults = machine.world, machine.world.rng, traffic.faults
    servers = [one for one in world.living() if one.name == SERVER]
    if what == "kill" and world.living():
        world.kill(rng.choice(world.living()))
    elif what == "torn" and servers:
        _tear(machine, rng.choice(servers))
    elif what == "cut":
        machine.cut()
        machine.tables.recover(machine.table)
    elif what == "fault":
        faults.left, faults.code = rng.randint(0, 30), rng.choice(_CODES)
    elif what == "full":
        faults.is_full = True
    elif what == "end" and servers:
        traffic.ending.add(rng.choice(servers))


def _tear(machine: Machine, server: Actor) -> None:
    """Kills a server in the middle of an append: a segment has its name, which is not durable yet.

    Soon after the power is cut, or it is not. Until then only requests are made that were made before.
    """
    world, rng = machine.world, machine.world.rng
    segments = f"{machine.home.log(STREAM)}/segments/00000000"
    for _ in range(_INTO_TURNS):
        if server.is_done or machine.disk.is_unsynced(segments, ".seg"):
            break
        world.turn(server)
    world.kill(server)
    machine.cut_in = rng.choice((0, rng.randint(2, _CUT_IN), rng.randint(2, _CUT_IN)))


def _ended(machine: Machine, traffic: Traffic, requests: list[Request]) -> None:
    """All is well again: who lives ends, the last engine comes to the log's end, the last server answers all."""
    world, faults = machine.world, traffic.faults
    faults.left, faults.is_full, machine.cut_in = None, False, 0
    traffic.ending |= {one for one in world.living() if one.name == SERVER}
    machine.is_ending = True
    while living := world.living():
        world.turn(world.rng.choice(living))
    traffic.returned(requests)
    traffic.wanted += [one for one in traffic.done if one.key is not None]
    traffic.done = []
    traffic.is_last = True
    ears, traffic.ears = traffic.ears, []
    _run(machine, SERVER, traffic)
    world.now_us += _HOURS_US
    _run(machine, "last engine", traffic)
    traffic.ears = [one for one in ears if one.last and not traffic.has_all(one)]
    _run(machine, SERVER, traffic)
    traffic.ears = ears
    for actor in world.actors:
        is_expected = actor.error is None or isinstance(actor.error, FencedError)
        if not is_expected:
            what = f"{actor.name} ended with {actor.error!r}"
            raise AssertionError(what) from actor.error


def _run(machine: Machine, name: str, traffic: Traffic) -> None:
    """One more process, which nobody disturbs, until it ends."""
    work = traffic.serve if name == SERVER else machine.engine
    actor = machine.world.start(name, work)
    for _ in range(20 * _TURNS):
        if actor.is_done:
            return
        machine.world.turn(actor)
    raise AssertionError(f"{name} does not end")


def _judge_told(machine: Machine, requests: list[Request]) -> None:
    """Behind a power cut: what was acknowledged before is there, where it was told, before anybody makes it again."""
    at = _found(machine)
    for one in requests:
        for position in one.answers:
            told = [at.get(position + row) for row in range(len(one.objects))]
            _hold(told == list(one.objects), f"a power cut took {one.objects}")


def _judge(machine: Machine, traffic: Traffic, requests: list[Request]) -> None:
    """What the log has of what was posted, and the table of the log."""
    at = _found(machine)
    places: dict[str, list[int]] = {}
    for position, name in at.items():
        places.setdefault(name, []).append(position)
    answers: dict[str, set[int]] = {}
    stored: Counter[str] = Counter()
    for one in requests:
        found = [places.get(name, []) for name in one.objects]
        copies = len(found[0]) if found else 0
        _hold(all(len(some) == copies for some in found), "a request is there in part")
        _hold(copies <= one.sent, "a request is there more often than it was made")
        _hold(len(set(one.answers)) <= copies, "what was acknowledged is not there")
        for position in one.answers:
            told = [at.get(position + row) for row in range(len(one.objects))]
            _hold(told == list(one.objects), f"{told} stands where {one.objects} is")
        if one.key is not None and one.key not in traffic.old_keys:
            stored[one.key] += copies
            answers.setdefault(one.key, set()).update(one.answers)
    for key, copies in stored.items():
        _hold(copies <= 1, f"what came with {key} is there {copies} times")
    for key, given in answers.items():
        _hold(len(given) <= 1, f"answers to {key} differ: {given}")
    rows = machine.tables.rows(machine.table)
    _hold(rows == calm(machine), "the table is not what a calm engine makes of the log")


def _found(machine: Machine) -> dict[int, str]:
    """The object at each position of the log that has a record."""
    log = machine.log()
    found: dict[int, str] = {}
    try:
        bodies = [
            (one.number, said_before(log.raw(one))[1])
            for one in log.segments(0)
            if not one.control
        ]
    except LogError as error:
        raise AssertionError(f"what was stored is gone: {error}") from error
    for number, body in bodies:
        for row, line in enumerate(body.decode().splitlines()[1:]):
            found[position_of(number, row)] = line.partition(",")[0]
    return found


def _judge_ear(traffic: Traffic, ear: Ear) -> None:
    places = [at for at, _ in ear.heard]
    _hold(places == sorted(set(places)), "changes come twice, or out of order")
    heard = [
        (*at, told["query"], told["object"], told["sign"]) for at, told in ear.heard
    ]
    if ear.last is None:
        _hold(not heard, "changes come without an id")
        return
    expected = traffic.expected(ear)
    _hold(heard == expected, f"{len(heard)} changes were heard of {len(expected)}")


def _hold(is_so: bool, what: str) -> None:
    assert is_so, what
