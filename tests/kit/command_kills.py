"""Commands that are killed (-9), at a step or a moment that a seed draws, until they have been; and what came of it.

A step is a change of a file of the home: a command is killed right before one, or at any moment, and is run again until
it comes to its end. What it was to do is then there, once, by a count that knows nothing of it.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import shapely

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.controls.reading import chosen
from st_common.controls.rows import LayerVersion
from st_common.engine.reshard import reshard
from st_common.engine.run import run
from st_common.engine.topology import Topology, topology_of
from st_common.layers.announce import announce
from st_common.layers.rows import layer_rows
from st_common.layers.table import newest_version
from st_common.log.control import control_rows
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.store import current, store
from tests.kit import victims
from tests.kit.layer_tables import features_of
from tests.kit.log_writer import bare_log, settings_of, write_log
from tests.kit.oracle import Feature
from tests.kit.ran_home import ran_home
from tests.kit.shards_here import shards_here
from tests.kit.soak import judge, stored
from tests.kit.strategies import STREAM

_KILLED = -9
_MAY_S, _DAY_S = 1_714_521_600, 86_400
_BACKTEST_CONF = """
[streams.walk]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""


class BrokenError(Exception):
    """What did not hold after a kill."""


def require(holds: object, text: str) -> None:
    """Makes sure that something holds.

    Raises:
        BrokenError: it does not.
    """
    if not holds:
        raise BrokenError(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """How often something was killed, and how many rows were counted at the end."""

    kills: int
    counted: int


@dataclass
class Killer:
    """Runs victims below a folder, and kills them at random.

    Attributes:
        root: the folder whose changes are steps; what victims say lies beside it.
        chance: draws.
        kills: how often one was killed.
    """

    root: Path
    chance: Random
    kills: int = 0
    _known: dict[str, tuple[int, float]] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """What victims said."""
        return self.root.with_name(f"{self.root.name}.out")

    def runs(self, what: str, program: Callable[..., None], *more: Any) -> str | None:
        """Runs a victim; what it said when it has come to its end, None when it was killed.

        Args:
            what: names runs that are alike, so that it is known how many steps they have.
            program: a function of `victims`, or a test's own.
            more: what it takes.

        Raises:
            BrokenError: it ended otherwise.
        """
        steps, seconds = self._known.get(what, (0, 0.0))
        way = self.chance.random() if steps else 1.0
        at = self.chance.randint(1, steps) if way < 0.6 else 0
        self.out.write_text("")
        begun_s = time.monotonic()
        process = victims.started(
            victims.stepping, self.out, self.root, at, program, *more
        )
        if 0.6 <= way < 0.85:
            process.join(self.chance.uniform(0, seconds))
            victims.killed(process)
        code = victims.ended(process)
        if code == _KILLED:
            self.kills += 1
            return None
        said = self.out.read_text()
        require(code == 0, f"{what} ended with {code}: {said[-2000:]}")
        *lines, last = said.splitlines()
        took = (int(last.split()[1]), time.monotonic() - begun_s)
        self._known[what] = max(self._known.get(what, took), took)
        return "\n".join(lines)

    def runs_through(self, what: str, program: Callable[..., None], *more: Any) -> str:
        """Runs a victim again and again until one comes to its end."""
        while (said := self.runs(what, program, *more)) is None:
            pass
        return said


def resharded(root: Path, *, kills: int, seed: int, rows: int = 300) -> Lived:
    """A stream goes from engine to engine while its log grows, killed at random; its changes are those of brute force.

    Args:
        root: an empty folder.
        kills: at least so often.
        seed: of all that is drawn.
        rows: of its log.

    Raises:
        BrokenError: a reshard did not come to its end, left neither topology in force, or the answers are others.
    """
    killer = Killer(root=root / "home", chance=Random(seed))
    chance, home = killer.chance, Home(killer.root)
    case = stored(home, seed, rows)
    stream = settings_of(STREAM, case.rules)
    order: dict[int, int] = {}
    parts = min(12, kills)
    cuts = [0, *sorted(chance.sample(range(1, len(case.rows)), parts - 1))]
    for a, b in pairwise([*cuts, len(case.rows)]):
        placed = write_log(home.log(STREAM), case.rows[a:b]).order
        numbers = range(len(order), len(order) + b - a)
        order |= dict(zip(sorted(placed), numbers, strict=True))
        if not a:
            run(home, _on(stream, "local"), until_idle=True)
        for _ in range(max(1, kills // parts)):
            _go_over(killer, stream)
    if _in_force(home).engine == "spark":
        reshard(home, stream, engine="local", shards=1, export=shards_here)
    run(home, _on(stream, "local"), until_idle=True)
    left = [path.name for path in home.stream(STREAM).glob("g*")]
    require(len(left) < 2, f"there are states of {left}")
    return Lived(kills=killer.kills, counted=judge(home, stream, case, order, seed))


def _on(stream: StreamSettings, engine: Literal["local", "spark"]) -> StreamSettings:
    return replace(stream, engine=engine)


def _in_force(home: Home) -> Topology:
    topology = topology_of(home, STREAM)
    assert topology is not None
    return topology


def _go_over(killer: Killer, stream: StreamSettings) -> None:
    """Takes the stream to another topology, by a command that is killed now and then."""
    home = Home(killer.root)
    before = _in_force(home)
    wanted = ("spark", killer.chance.randint(1, 3))
    if before.engine == "spark" and killer.chance.random() < 0.6:
        wanted = ("local", 1)
    what = f"{before.engine} to {wanted[0]}"
    while True:
        done = killer.runs(what, victims.resharder, home.root, stream, *wanted)
        now = _in_force(home)
        is_over = (now.engine, now.shards) == wanted
        stays = now == before
        require(is_over or stays, f"{what}: {now} is in force, {before} was")
        if done is not None:
            require(is_over, f"{what}: {now} is in force at the end")
            return
        if now.engine == "local" and killer.chance.random() < 0.3:
            run(home, _on(stream, "local"), until_idle=True)


def spread(root: Path, *, kills: int, seed: int) -> Lived:
    """Layers go over to ever newer regions, killed at random: features stay, and each version is told once.

    Args:
        root: an empty folder.
        kills: at least so often.
        seed: of all that is drawn.

    Raises:
        BrokenError: a layer is not what it was by the newest regions, or a stream was not told, or twice.
    """
    killer = Killer(root=root / "home", chance=Random(seed))
    chance, home = killer.chance, Home(killer.root)
    contract, points = load_contract("layers"), np.random.default_rng(seed)
    squares = {name: _squares(chance) for name in ("parks", "zones")}
    for name, features in squares.items():
        rows = layer_rows(features_of(features), whole("g"))
        tables.replace(home.table("layers", name), rows, contract)
    log = bare_log(home.log("cars"))
    home.stream("cars").mkdir(parents=True)
    announce(home)
    told = {(name, 1) for name in squares}
    while killer.kills < kills:
        split = median_split(points.uniform(-50, 50, (60, 2)), chance.randint(1, 9))
        made = Regions(group="g", version=0, region_id=split.paths, bounds=split.bounds)
        store(home, made, np.ones(len(split.paths), np.int64), "drawn")
        words = ("--rebalance", "--engine", "local", "--home", str(home.root))
        killer.runs_through("spread", victims.partition, *words)
        for name, features in squares.items():
            order = [("region_id", "ascending"), ("fid", "ascending")]
            wanted = layer_rows(features_of(features), current(home, "g"))
            found = tables.read(home.table("layers", name), columns=wanted.column_names)
            same = found.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()
            require(same, f"layer {name} is not what it was by the newest regions")
            told.add((name, newest_version(home, name) or 0))
        rows = [
            (row.layer, row.version)
            for segment in log.control_segments(0)
            for _, row in chosen(control_rows(log, segment), LayerVersion)
        ]
        require(len(rows) == len(set(rows)), f"told twice: {rows[-9:]}")
        missing = told - set(rows)
        require(not missing, f"the stream was not told of {missing}")
    return Lived(kills=killer.kills, counted=len(told))


def _squares(chance: Random) -> list[Feature]:
    """Features here and there, some across borders of regions."""
    return [
        Feature(
            f"f{number:03d}",
            f"k{number % 3}",
            shapely.box(x, y, x + chance.randint(1, 30), y + chance.randint(1, 30)),
            {"n": str(number)},
        )
        for number in range(40)
        for x, y in [(chance.randint(-50, 50), chance.randint(-50, 50))]
    ]


def backtested(root: Path, *, kills: int, seed: int, days: int = 3) -> Lived:
    """A backtest is killed at random, with one process or two: the home stays as it is, and the answer is counted.

    Args:
        root: an empty folder.
        kills: at least so often.
        seed: of all that is drawn.
        days: how many.

    Raises:
        BrokenError: it wrote into the home, left something behind, or told other visits than a plain count.
    """
    killer = Killer(root=root / "home", chance=Random(seed))
    chance, rows = killer.chance, [f"o{n},{_MAY_S - 1},90,90" for n in range(9)]
    killer.root.mkdir()
    places = dict.fromkeys(range(9), (90, 90))
    visits = [0] * days
    for second in range(0, days * _DAY_S, 600):
        one = chance.randrange(9)
        was, places[one] = places[one], (chance.randint(0, 99), chance.randint(0, 99))
        rows.append(f"o{one},{_MAY_S + second},{places[one][0]},{places[one][1]}")
        visits[second // _DAY_S] += max(was) > 50 >= max(places[one])
    rows.append(f"o0,{_MAY_S + days * _DAY_S + 3600},90,90")
    text = "\n".join(["id,t,x,y", *rows, ""])
    home = ran_home(killer.root, _BACKTEST_CONF, "walk", text)
    (root / "new.sql").write_text(
        "REGISTER QUERY near AS SELECT * FROM walk INSIDE (0, 0, 50, 50);"
    )
    before = _files(home)
    while killer.kills < kills:
        cores = str(chance.choice((1, 2)))
        words = ["backtest", str(root / "new.sql"), "--stream", "walk"]
        words += ["--json", "--days", str(days), "--cores", cores]
        words += ["--home", str(home.root)]
        said = killer.runs_through(f"{cores} cores", victims.command, *words)
        found = [json.loads(line)["visits"] for line in said.splitlines()[:days]]
        require(found == visits, f"{found} visits, {visits} were made")
        require(_files(home) == before, f"left: {_files(home) ^ before}")
    return Lived(kills=killer.kills, counted=sum(visits))


def _files(home: Home) -> set[tuple[str, int]]:
    """The files of a home, with their sizes."""
    files = (path for path in home.root.rglob("*") if path.is_file())
    return {(str(path), path.stat().st_size) for path in files}
