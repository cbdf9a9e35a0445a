"""Two streams whose queries feed a third one, and what its queries must tell, by looking at all fixes at each tick."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from st_common.answers.changes import stream_changes
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.delivery.stream_feed import StreamFeed
from st_common.engine.run import run
from st_common.engine.summary import RunSummary
from st_common.log.control import write_end
from st_common.query.area_store import HomeAreas
from st_common.query.registry import carry_out
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

QUERIES = MappingProxyType({"f": "fast", "s": "slow"})
"""What feeds the stream `both`: queries, each with its stream."""
SIDE, NEAR_M, SILENCE_S = 50, 10, 20
_SOURCE = """
[streams.%s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
lateness_s = 3
"""
_FED = """
[streams.both]
format = "ndjson"
columns = { object = "row", event_ts = "event_ts", x = "x", y = "y", gone = "gone" }
crs = "planar"
time_unit = "us"
max_ahead_s = "off"
engine = "local"
silence_s = %d
lateness_s = %d
"""
_STATEMENTS = f"""
REGISTER QUERY f AS SELECT x, y FROM fast INSIDE (0, 0, {SIDE}, {SIDE}) EMIT EVERY;
REGISTER QUERY s AS SELECT x, y FROM slow INSIDE (0, 0, {SIDE}, {SIDE}) EMIT EVERY;
REGISTER QUERY near AS SELECT a.x AS x FROM both a JOIN both b ON ST_DWithin(a, b, {NEAR_M} m);
REGISTER QUERY crowd AS SELECT COUNT(*) FROM both
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A fix: whole seconds, and metres; `y` is 1."""

    object: str
    second: int
    x: int


def home_of(folder: Path, *, lateness_s: int) -> Home:
    """A home with two sources, what feeds the stream `both`, and two queries over it.

    Args:
        folder: where it is made; it is empty.
        lateness_s: of the stream that is fed.
    """
    (folder / "conf").mkdir(parents=True)
    conf = _SOURCE % "fast" + _SOURCE % "slow" + _FED % (SILENCE_S, lateness_s)
    (folder / "conf" / "streams.toml").write_text(conf)
    home = Home(folder)
    statements = parse(_STATEMENTS, areas=HomeAreas(home))
    carry_out(home, load_streams(folder / "conf"), statements, owner="me")
    return home


def settings_of(home: Home, stream: str) -> StreamSettings:
    """The settings of a stream of the home."""
    return load_streams(home.root / "conf")[stream]


def came(
    home: Home, stream: str, places: Iterable[Place], *, end: bool = False
) -> None:
    """Puts fixes, and an end mark, into the log of a source, and runs its engine."""
    log = bare_log(home.log(stream))
    lines = "".join(f"{one.object},{one.second},{one.x},1\n" for one in places)
    if lines:
        log.append(b"id,t,x,y\n" + lines.encode(), arrival_us=0)
    if end:
        write_end(log, arrival_us=0)
    run(home, settings_of(home, stream), until_idle=True)


def feeder(home: Home, query: str) -> StreamFeed:
    """What feeds the stream `both` with a query."""
    return StreamFeed(home, query, settings_of(home, "both"), clock=lambda: 7)


def ran(home: Home) -> RunSummary:
    """Runs the engine of the stream that is fed, to its log's end."""
    return run(home, settings_of(home, "both"), until_idle=True)


def told(home: Home) -> dict[str, dict[int, Any]]:
    """By query what holds from each second on at which it changes: the number of objects, and pairs of near ones."""
    changes = stream_changes(home, "both").to_pylist()
    changes.sort(key=lambda one: (one["position"], one["seq"]))
    crowd: dict[int, int] = {}
    near: dict[int, frozenset[tuple[str, str]]] = {}
    pairs: set[tuple[str, str]] = set()
    for one in changes:
        second = round(one["event_ts"].timestamp())
        if one["query"] == "crowd" and one["sign"] > 0:
            crowd[second] = int(one["value"])
        elif one["query"] == "near":
            pair = (one["object"], one["partner"])
            (pairs.add if one["sign"] > 0 else pairs.discard)(pair)
            near[second] = frozenset(pairs)
    return {"crowd": crowd, "near": near}


def expected(*sources: Iterable[Place]) -> dict[str, dict[int, Any]]:
    """As `told`, of all fixes of both sources: at each second the last element of each object says where it is."""
    places = [one for source in sources for one in _elements(source)]
    latest: dict[str, Place] = {}
    out: dict[str, dict[int, Any]] = {"crowd": {}, "near": {}}
    by_second: dict[int, list[Place]] = {}
    for one in places:
        by_second.setdefault(one.second, []).append(one)
    for second in range(min(by_second, default=0), max(by_second, default=-1) + 1):
        latest |= {one.object: one for one in by_second.get(second, ())}
        there = {
            name: one.x
            for name, one in latest.items()
            if one.x <= SIDE and second < one.second + SILENCE_S
        }
        pairs = frozenset(
            (a, b)
            for a in there
            for b in there
            if a != b and abs(there[a] - there[b]) <= NEAR_M
        )
        out["crowd"][second], out["near"][second] = len(there), pairs
    return {query: _changes(values) for query, values in out.items()}


def _elements(source: Iterable[Place]) -> Iterable[Place]:
    """What the query of a source gives: fixes in the zone, and the first one outside after them."""
    inside: set[str] = set()
    for one in sorted(source, key=lambda place: place.second):
        was_inside = one.object in inside
        (inside.add if one.x <= SIDE else inside.discard)(one.object)
        if was_inside or one.object in inside:
            yield one


def _changes(values: dict[int, Any]) -> dict[int, Any]:
    """Only what differs from the second before; nothing is there before the first."""
    before: Any = None
    out = {}
    for second, value in values.items():
        if value != before and (before is not None or value):
            out[second] = value
        before = value
    return out
