"""A shard follows all objects while it judges a query that asks where others are (S7): that does not show."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common.config.home import Home
from st_common.engine.cross_shard import NOBODY
from st_common.engine.run import run
from st_common.log.log import Log
from st_common.operators.guests.answering import Told
from st_common.operators.runtime.compiling import owners_of
from st_common.operators.state.intern import hashes_of
from st_common.position import position_of
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.spark import resident_engine
from st_common.spark.exchange.decoding import Decoding
from st_common.spark.exchange.eras import Era, begin_era, era_of, states_of, wider
from st_common.spark.exchange.guests import GUESTS, TOLD, GuestService
from st_common.spark.task_settings import TaskSettings
from st_common.storage import make_folder
from tests.kit import cars
from tests.kit.cars import told
from tests.kit.resident import follow_resident

pytestmark = [
    pytest.mark.spec("S7"),
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("eras"),  # what one shard tells is found once
]
CARS = replace(cars.CARS, silence_s=20.0)
STEPS = (
    "REGISTER QUERY room AS SELECT * FROM cars INSIDE (0, 0, 50, 50)",
    "REGISTER QUERY near AS SELECT * FROM cars KNN (3, 40, 40)",
    "REGISTER QUERY fence AS SELECT * FROM cars INSIDE (0, 0, 50, 50) DETECT ENTER, EXIT, DWELL 5 s",
    "DROP QUERY near",
    "REPLACE QUERY room AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 50, 50) WINDOW 10 s",
    "DROP QUERY room",
)


MANY = (
    *(
        f"REGISTER QUERY near{n} AS SELECT * FROM cars KNN (3, {n * 9}, {n * 7})"
        for n in range(6)
    ),
    "REGISTER QUERY pairs AS SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 6 m)",
    *(f"DROP QUERY {name}" for name in ("pairs", "near0", "near1", "near2", "near3")),
    "REGISTER QUERY going AS SELECT * FROM cars INSIDE ('M', 'c3', 20, 20)",
    *(f"DROP QUERY {name}" for name in ("near4", "near5", "going")),
)


GOING = (
    STEPS[0],
    "; ".join(
        f"REGISTER QUERY box{n} AS SELECT * FROM cars INSIDE ('M', 'c{n}', 30, 20)"
        for n in range(12)
    ),
    "REGISTER QUERY circle AS SELECT * FROM cars INSIDE ('M', 'c7', 12 m) EMIT EVERY",
    "REGISTER QUERY near AS SELECT * FROM cars KNN (3, 40, 40)",
    "REPLACE QUERY box3 AS SELECT * FROM cars INSIDE ('M', 'c30', 40, 10) WHERE x > 20",
    "REPLACE QUERY box4 AS SELECT COUNT(*) FROM cars INSIDE ('M', 'c4', 40, 10)",
    "DROP QUERY near",
    "DROP QUERY box4",
    *(f"DROP QUERY box{n}" for n in range(4)),
    *(f"DROP QUERY box{n}" for n in range(5, 12)),
    "DROP QUERY circle",
)


def lived_through(folder, follow, steps=STEPS) -> Home:
    """A home where queries come and go while 40 cars drive; it is followed after each step, and in between."""
    home = Home(folder)
    make_folder(folder)
    for number, step in enumerate(steps):
        carry_out(home, {"cars": CARS}, parse(step), owner="me", now_us=number)
        drive(home, range(number * 8, number * 8 + 8))
        if number % 2:
            follow(home)
    follow(home)
    return home


@cache
def told_alone(steps):
    """What one shard tells of such a home."""
    with TemporaryDirectory() as folder:
        home = lived_through(
            Path(folder), lambda home: run(home, CARS, until_idle=True), steps
        )
        return told(home)


def drive(home: Home, seconds: range) -> None:
    """Of 40 cars some fall silent."""
    cars.drive(
        home,
        seconds,
        cars=40,
        says=lambda car, second: car % 7 == second % 7 or second < 10,
    )


def noting_eras(monkeypatch):
    """The list that takes each era that begins."""
    begun = []

    def noted(home, feed, before, era, **more):
        begun.append(era)
        return begin_era(home, feed, before, era, **more)

    monkeypatch.setattr("st_common.spark.resident_engine.begin_era", noted)
    return begun


@pytest.mark.parametrize(("shards", "seed"), [(3, None), (4, 1), (4, 2)])
def test_eras_come_and_go_with_the_queries_and_do_not_show(
    monkeypatch, tmp_path, shards, seed
):
    begun = noting_eras(monkeypatch)
    alone = told_alone(STEPS)
    dealt = lived_through(
        tmp_path / "b",
        lambda home: follow_resident(home, CARS, shards=shards, seed=seed),
    )
    assert told(dealt) == alone
    assert len(alone) > 100
    near, room = owners_of(["near", "room"], shards).tolist()
    assert [era.following for era in begun] == [{near}, NOBODY, {room}, NOBODY]


@pytest.mark.parametrize(
    ("shards", "seed", "in_files"),
    [(5, None, True), (5, 3, False), (2, 4, False), (2, None, True)],
)
def test_those_shards_follow_all_objects_that_must(
    monkeypatch, tmp_path, shards, seed, in_files
):
    """Also where others write what they tell into files."""
    if in_files:
        monkeypatch.setattr(resident_engine, "FILES_FROM_BYTES", 0)
        monkeypatch.setattr(resident_engine, "FILES_FROM_ROWS", 1)
    begun = noting_eras(monkeypatch)
    alone = told_alone(MANY)
    dealt = lived_through(
        tmp_path / "b",
        lambda home: follow_resident(home, CARS, shards=shards, seed=seed),
        MANY,
    )
    assert told(dealt) == alone
    assert len(alone) > 100
    sizes = [len(era.following) for era in begun]
    assert max(sizes) == shards, "pairs are judged by all"
    assert sizes[-1] == 0
    assert shards == 2 or any(0 < size < shards for size in sizes)


@pytest.mark.spec("P9")
@pytest.mark.parametrize(("shards", "seed"), [(3, None), (4, 1), (5, 2), (4, 5)])
def test_shards_that_know_guests_tell_what_one_shard_tells(
    monkeypatch, tmp_path, shards, seed
):
    begun = noting_eras(monkeypatch)
    alone = told_alone(GOING)
    dealt = lived_through(
        tmp_path / "b",
        lambda home: follow_resident(home, CARS, shards=shards, seed=seed),
        GOING,
    )
    assert told(dealt) == alone
    assert len(alone) > 100
    assert any(era.by_reach for era in begun)


@given(st.frozensets(st.integers(0, 8)), st.frozensets(st.integers(0, 8), min_size=1))
def test_more_shards_follow_all_objects_in_few_steps(following, asked):
    """Each time at least twice as many, so nine shards take at most five eras."""
    assume(asked - following)
    wide = wider(Era(start=0, following=following), asked, shards=9)
    assert wide >= following | asked
    assert len(wide) >= min(2 * len(following), 9)


def test_one_query_has_one_shard_follow_all_objects(tmp_path):
    home = Home(tmp_path)
    make_folder(tmp_path)
    carry_out(home, {"cars": CARS}, parse(STEPS[1]), owner="me", now_us=0)
    drive(home, range(20))
    follow_resident(home, CARS, shards=4, tasks=2)
    feed = TaskSettings.of(home, replace(CARS, shards=4))
    era = era_of(home, feed, committed=position_of(Log(home.log("cars")).end(), 0))
    (judge,) = owners_of(["near"], 4).tolist()
    assert era.following == {judge}
    states = [
        states_of(home, "cars", era, shard).newest(upto=1 << 60) for shard in range(4)
    ]
    known = [len(state.objects) for state in states]
    assert known[judge] == 40
    others = [count for shard, count in enumerate(known) if shard != judge]
    assert all(0 < count < 20 for count in others)


@pytest.mark.spec("P9")
def test_a_shard_that_knows_guests_knows_fewer_than_all_objects(tmp_path):
    home = Home(tmp_path)
    make_folder(tmp_path)
    boxes = "; ".join(
        f"REGISTER QUERY box{n} AS SELECT * FROM cars INSIDE ('M', 'c{n}', 6, 6)"
        for n in range(40)
    )
    carry_out(home, {"cars": CARS}, parse(boxes), owner="me", now_us=0)
    for second in range(0, 12, 4):
        drive(home, range(second, second + 4))
        follow_resident(home, CARS, shards=4, tasks=2)
    feed = TaskSettings.of(home, replace(CARS, shards=4))
    era = era_of(home, feed, committed=position_of(Log(home.log("cars")).end(), 0))
    assert (era.following, era.by_reach) == (NOBODY, True)
    states = [
        states_of(home, "cars", era, shard).newest(upto=1 << 60) for shard in range(4)
    ]
    known = [len(state.objects) for state in states]
    assert all(count < 32 for count in known)
    assert sum(known) > 40, "some are guests"
    dealt = {one.dealt for one in states[0].queries}
    assert dealt == {0, 1, 2, 3}


def test_what_nobody_has_at_hand_is_made_of_what_is_stored_and_the_log(tmp_path):
    """Of cars that report each second, where each was before second 9, and in it, though states stand behind it."""
    home = Home(tmp_path)
    make_folder(tmp_path)
    carry_out(home, {"cars": CARS}, parse(STEPS[0]), owner="me", now_us=0)
    drive(home, range(12))
    follow_resident(home, CARS, shards=3, tasks=2)
    feed = TaskSettings.of(home, replace(CARS, shards=3))
    log = Log(home.log("cars"))
    start = log.end() - 3
    service = GuestService(feed, Decoding(feed))
    part = {
        "start": start,
        "end": start + 1,
        "era": Era(start=0, following=NOBODY).to_json(),
    }
    objects = hashes_of(pa.array([f"c{n}" for n in range(40)]), feed.stream.id_key)
    asked = {"what": GUESTS, "shards": [0, 1, 2], "side": None, **part}
    every = np.sort(objects)
    _, arrays = service.answer(asked, {"hashes": every, "new": every})
    told = Told.from_blob(arrays[TOLD][0].as_buffer())
    ids = told.state.objects.ids.to_pylist()
    assert sorted(ids) == sorted(f"c{n}" for n in range(40))
    for car, x, ts in zip(ids, told.state.fixes.x, told.state.fixes.ts, strict=True):
        number, second = int(car[1:]), ts // 1_000_000
        assert second == 8
        assert x == (number * 7 + second * (1 + number % 5)) % 100
    assert set(told.fixes.ts.tolist()) == {9_000_000}
    assert len(told.fixes) == 40


def test_a_shard_of_an_era_of_its_own_knows_its_own_objects_alone(tmp_path):
    home = Home(tmp_path)
    make_folder(tmp_path)
    carry_out(home, {"cars": CARS}, parse(STEPS[0]), owner="me", now_us=0)
    drive(home, range(20))
    follow_resident(home, CARS, shards=4, tasks=2)
    feed = TaskSettings.of(home, replace(CARS, shards=4))
    era = era_of(home, feed, committed=position_of(Log(home.log("cars")).end(), 0))
    assert era == Era(start=0, following=NOBODY)
    states = [
        states_of(home, "cars", era, shard).newest(upto=1 << 60) for shard in range(4)
    ]
    assert sum(len(state.objects) for state in states) == 40
    assert all(0 < len(state.objects) < 40 for state in states)


def test_eras_behind_the_end_of_a_table_that_was_put_back_are_forgotten(tmp_path):
    home, stream = Home(tmp_path), replace(CARS, shards=2)
    make_folder(home.stream("cars") / "resident")
    feed = TaskSettings.of(home, stream)
    first = era_of(home, feed, committed=-1)
    assert first == Era(start=0, following=NOBODY)
    second = begin_era(home, feed, first, Era(start=0, following=frozenset([1])))
    assert era_of(home, feed, committed=position_of(9, 0)) == second
    assert era_of(home, feed, committed=-1) == second, "nothing was told before it"
    kept = home.stream("cars") / "resident" / second.folder
    make_folder(kept)
    assert era_of(home, feed, committed=-1) == second
    assert kept.exists()
