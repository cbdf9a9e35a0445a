"""Regions that stand still, evaluated every n seconds: by FROM (SELECT ..), whose rows are compared tick by tick."""

import itertools
import random
from dataclasses import replace

import pytest

from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.engine.run import run
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.storage import make_folder
from tests.kit import cars
from tests.kit.cars import told
from tests.kit.resident import follow_resident

pytestmark = [pytest.mark.spec("P9"), pytest.mark.timeout(300)]

SECONDS, COUNT = 40, 30
QUERIES = """
REGISTER QUERY at_once AS SELECT * FROM cars INSIDE (0, 0, 50, 50);
REGISTER QUERY at_ticks AS SELECT * FROM (SELECT * FROM cars INSIDE (0, 0, 50, 50));
REGISTER QUERY fast AS SELECT * FROM (SELECT * FROM cars WHERE x > 20 INSIDE CIRCLE (50, 50, 30));
REGISTER QUERY going AS SELECT * FROM cars INSIDE ('M', 'c3', 40, 40)
"""


def place(car, second):
    """Where a car of `cars.drive` is."""
    return (car * 7 + second * (1 + car % 5)) % 100, (car * 13 + second) % 100


def in_room(x, y):
    return x <= 50 and y <= 50


def in_circle(x, y):
    return x > 20 and (x - 50) ** 2 + (y - 50) ** 2 <= 900


def expected(said, tick_s, holds):
    """What changes from tick to tick: of each car the last place up to then counts. Ticks that the clock has passed."""
    rows, before = set(), frozenset()
    newest = max(second for _, second in said)
    for tick in range(0, newest, tick_s):
        last = {}
        for car, second in sorted(said, key=lambda each: each[1]):
            if second <= tick:
                last[f"c{car}"] = place(car, second)
        now = frozenset(car for car, at in last.items() if holds(*at))
        rows |= {(car, 1, tick) for car in now - before}
        rows |= {(car, -1, tick) for car in before - now}
        before = now
    return rows


def lived_through(folder, tick_s, seed, follow):
    """A home whose stream is followed in pieces, each of which starts the engine anew; and which cars spoke when."""
    home, stream = Home(folder), replace(cars.CARS, tick_s=float(tick_s))
    make_folder(folder)
    carry_out(home, {"cars": stream}, parse(QUERIES), owner="me", now_us=0)
    rng = random.Random(seed)
    said = {
        (car, second)
        for car, second in itertools.product(range(COUNT), range(SECONDS))
        if rng.random() < 0.4
    }
    cuts = sorted(rng.sample(range(1, SECONDS), 3))
    for start, end in itertools.pairwise([0, *cuts, SECONDS]):
        spoke = lambda car, second: (car, second) in said
        cars.drive(home, range(start, end), cars=COUNT, says=spoke)
        follow(home, stream)
    return home, stream, said


def changes_of(home, query):
    return {
        (row["object"], row["sign"], int(row["event_ts"].timestamp()))
        for row in told(home)
        if row["query"] == query
    }


def alone(home, stream):
    run(home, stream, until_idle=True)


def dealt(shards, seed):
    return lambda home, stream: follow_resident(home, stream, shards=shards, seed=seed)


@pytest.mark.parametrize(("tick_s", "seed"), [(1, 1), (7, 3)])
@pytest.mark.parametrize(
    "follow",
    [alone, dealt(2, None), dealt(3, 5)],
    ids=["alone", "two shards", "three shards that break off"],
)
def test_only_differences_between_ticks_are_told(tmp_path, tick_s, seed, follow):
    home, stream, said = lived_through(tmp_path, tick_s, seed, follow)
    wanted = expected(said, tick_s, in_room)
    assert changes_of(home, "at_ticks") == wanted
    assert len(wanted) > 20
    assert changes_of(home, "fast") == expected(said, tick_s, in_circle)
    ticks = {at for _, _, at in changes_of(home, "going")}
    assert all(at % tick_s == 0 for at in ticks), "as a region that moves"
    if tick_s > 1:  # who comes and goes between two ticks is told at once alone
        assert len(changes_of(home, "at_once")) > len(wanted)
    checked = {one.query: one for one in verify(home, stream)}
    assert checked["at_ticks"].holds
    assert checked["fast"].holds
