"""A query over two streams answers as all fixes of both say, however they come and whoever dies (docs/adr/0036)."""

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.changes import stream_changes
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.delivery.joint_feed import JointFeed
from st_common.engine.run import run
from st_common.log.control import write_clock, write_end
from st_common.log.log import Log
from st_common.query.area_store import HomeAreas
from st_common.query.created_streams import known_streams
from st_common.query.registry import carry_out
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log
from tests.kit.two_streams import CLOCK, NEAR_M, SIDE_M, SILENCE_S, Said, expected, told

_CONF = """
[streams.%s]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
silence_s = %d
lateness_s = %d
"""
_QUERIES = f"""
REGISTER QUERY near AS SELECT * FROM cars c JOIN police p ON ST_DWithin(c, p, {NEAR_M} m);
REGISTER QUERY around AS SELECT * FROM cars INSIDE ('M', 'police.a', {SIDE_M}, {SIDE_M});
REGISTER QUERY nearest AS SELECT * FROM cars KNN ('M', 1, 'police.a');
"""
_JOINT = "cars-and-police"
_SECONDS = 50


class KillError(Exception):
    """Whoever joins the streams dies."""


def rows_of(chance: Random) -> list[Said]:
    """Rows of a stream: mostly in order, with late ones, doubles, objects that are gone, and clocks that run ahead."""
    seconds = sorted(chance.choices(range(_SECONDS), k=chance.randint(1, 40)))
    seconds.sort(key=lambda second: second + chance.random() * chance.choice((1, 3, 9)))
    rows, high = [], 0
    for second in seconds:
        high = max(high, second)
        x = None if chance.random() < 0.05 else chance.randint(0, 40)
        rows.append(Said(chance.choice("abc"), second, x))
        if chance.random() < 0.1:
            high += chance.randint(0, 4)
            rows.append(Said(CLOCK, high))
    return rows


def append(log: Log, rows: list[Said]) -> None:
    """Puts rows into the log of a stream, neighbours of one kind into one segment."""
    lines: list[str] = []
    for row in [*rows, Said(CLOCK, -1)]:
        if row.object != CLOCK:
            place = ",,1" if row.x is None else f"{row.x},0,"
            lines.append(f"{row.object},{row.second},{place}\n")
            continue
        if lines:
            log.append(("id,t,x,y,gone\n" + "".join(lines)).encode(), arrival_us=0)
            lines = []
        if row.second >= 0:
            write_clock(log, row.second * 1_000_000, arrival_us=0)


class Life:
    """A home whose two streams grow while somebody joins them."""

    def __init__(self, folder: Path, lateness_s: tuple[int, int]) -> None:
        (folder / "conf").mkdir(parents=True)
        conf = "".join(
            _CONF % (name, SILENCE_S, late)
            for name, late in zip(("cars", "police"), lateness_s, strict=True)
        )
        (folder / "conf" / "streams.toml").write_text(conf)
        self.home = Home(folder)
        self.logs = {name: bare_log(self.home.log(name)) for name in ("cars", "police")}

    def registers(self) -> None:
        """Registers the queries, of which the first makes the joint stream."""
        streams = known_streams(self.home, self.home.root / "conf")
        areas = HomeAreas(self.home, lambda: streams)
        done = carry_out(self.home, streams, parse(_QUERIES, areas=areas), owner="me")
        assert done.streams_created == (_JOINT,)
        self.streams = known_streams(self.home, self.home.root / "conf")
        self.feed = self.began()

    def began(self) -> JointFeed:
        return JointFeed(self.home, self.streams[_JOINT], self.streams, clock=lambda: 7)

    def dies(self, chance: Random) -> None:
        """It dies at one of its next appends, before or after it, or before it notes how far it is; another begins."""
        left, before = chance.randint(0, 3), chance.random() < 0.5
        append = Log.append

        def killed(log: Log, *given, **named):
            nonlocal left
            left -= 1
            if left < 0 and before:
                raise KillError
            done = append(log, *given, **named)
            if left < 0:
                raise KillError
            return done

        where = (
            patch.object(Log, "append", killed)
            if chance.random() < 0.7
            else patch.object(JointFeed, "_note", side_effect=KillError)
        )
        with where, suppress(KillError):
            for _ in range(3):
                self.feed.poll()
        self.feed = self.began()

    def lives(self, chance: Random, rows: dict[str, list[Said]]) -> None:
        """Rows come in parts of any size, at any relative speed; now and then the engine runs."""
        left = {name: list(of) for name, of in rows.items()}
        share = chance.choice((0.02, 0.2, 0.5, 0.8, 0.98))
        while any(left.values()):
            name = "cars" if chance.random() < share else "police"
            name = name if left[name] else next(each for each in left if left[each])
            part = chance.randint(1, 9)
            append(self.logs[name], left[name][:part])
            left[name] = left[name][part:]
            if not left[name]:
                write_end(self.logs[name], arrival_us=0)
            for _ in range(chance.randint(0, 3)):
                self.takes_turn(chance)
        self.feed = self.began()
        self.feed.run()

    def takes_turn(self, chance: Random) -> None:
        what = chance.choice(("poll", "poll", "poll", "note", "dies", "again", "runs"))
        if what == "dies":
            self.dies(chance)
        elif what == "again":
            self.feed = self.began()
        elif what == "note":
            self.feed.poll()
            self.feed._note(force=True)
        elif what == "runs" and chance.random() < 0.2:
            self.runs()
        else:
            self.feed.poll()

    def runs(self) -> None:
        run(self.home, self.streams[_JOINT], until_idle=True)


def plain(changes: list[dict]) -> list[dict]:
    """With ids as in their own streams."""
    return [
        one
        | {
            "object": one["object"].partition("/")[2],
            "partner": one["partner"] and one["partner"].partition("/")[2],
        }
        for one in changes
    ]


@pytest.mark.spec("G4", "X2", "X7")
@tries(6)
@given(
    st.integers(0, (1 << 32) - 1),
    st.sampled_from([(0, 0), (5, 0), (0, 3), (4, 4)]),
)
def test_a_query_over_two_streams_tells_what_all_fixes_of_both_say(
    seed: int, lateness_s: tuple[int, int]
):
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder) / "home", lateness_s)
        rows = {"cars": rows_of(chance), "police": rows_of(chance)}
        before = {
            name: chance.choice((0, 0, chance.randint(0, len(of) - 1)))
            for name, of in rows.items()
        }
        for name, count in before.items():
            append(life.logs[name], rows[name][:count])
        life.registers()
        life.lives(chance, {name: of[before[name] :] for name, of in rows.items()})
        life.runs()
        changes = stream_changes(life.home, _JOINT).to_pylist()
        assert told(plain(changes)) == expected(
            rows["cars"], rows["police"], lateness_s, tuple(before.values())
        )
        assert all(one.holds for one in verify(life.home, life.streams[_JOINT]))
