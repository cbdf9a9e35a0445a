"""Shards follow their own objects alone while no query asks where others are (S7); it does not show in what is told."""

from dataclasses import replace

import pytest

from st_common.capture.log import Log
from st_common.engine.run import run
from st_common.home import Home
from st_common.position import position_of
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.spark.eras import Era, begin_era, era_of, states_of
from st_common.spark.resident import feed_of
from st_common.storage import make_folder
from st_common.testing import cars
from st_common.testing.cars import told
from st_common.testing.resident import follow_resident

pytestmark = [pytest.mark.spec("S7"), pytest.mark.timeout(300)]
CARS = replace(cars.CARS, silence_s=20.0)
STEPS = (
    "REGISTER QUERY room AS SELECT * FROM cars INSIDE (0, 0, 50, 50)",
    "REGISTER QUERY near AS SELECT * FROM cars KNN (3, 40, 40)",
    "REGISTER QUERY fence AS SELECT * FROM cars INSIDE (0, 0, 50, 50) DETECT ENTER, EXIT, DWELL 5 s",
    "DROP QUERY near",
    "REPLACE QUERY room AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 50, 50) WINDOW 10 s",
    "DROP QUERY room",
)


def lived_through(folder, follow) -> Home:
    """A home where queries come and go while 40 cars drive; it is followed after each step, and in between."""
    home = Home(folder)
    make_folder(folder)
    for number, step in enumerate(STEPS):
        carry_out(home, {"cars": CARS}, parse(step), owner="me", now_us=number)
        drive(home, range(number * 8, number * 8 + 8))
        if number % 2:
            follow(home)
    follow(home)
    return home


def drive(home: Home, seconds: range) -> None:
    """Of 40 cars some fall silent."""
    cars.drive(
        home,
        seconds,
        cars=40,
        says=lambda car, second: car % 7 == second % 7 or second < 10,
    )


@pytest.mark.parametrize(("shards", "seed"), [(3, None), (4, 1), (4, 2)])
def test_eras_come_and_go_with_the_queries_and_do_not_show(
    monkeypatch, tmp_path, shards, seed
):
    begun = []

    def noted(*args, start, moving):
        begun.append(moving)
        return begin_era(*args, start=start, moving=moving)

    monkeypatch.setattr("st_common.spark.resident_engine.begin_era", noted)
    alone = lived_through(tmp_path / "a", lambda home: run(home, CARS, until_idle=True))
    dealt = lived_through(
        tmp_path / "b",
        lambda home: follow_resident(home, CARS, shards=shards, seed=seed),
    )
    assert told(dealt) == told(alone)
    assert len(told(alone)) > 100
    assert begun == [True, False, True, False]


def test_a_shard_of_an_era_of_its_own_knows_its_own_objects_alone(tmp_path):
    home = Home(tmp_path)
    make_folder(tmp_path)
    carry_out(home, {"cars": CARS}, parse(STEPS[0]), owner="me", now_us=0)
    drive(home, range(20))
    follow_resident(home, CARS, shards=4, tasks=2)
    feed = feed_of(home, replace(CARS, shards=4))
    era = era_of(home, feed, committed=position_of(Log(home.log("cars")).end(), 0))
    assert era == Era(start=0, moving=False)
    states = [
        states_of(home, "cars", era, shard).newest(upto=1 << 60) for shard in range(4)
    ]
    assert sum(len(state.objects) for state in states) == 40
    assert all(0 < len(state.objects) < 40 for state in states)


def test_eras_behind_the_end_of_a_table_that_was_put_back_are_forgotten(tmp_path):
    home, stream = Home(tmp_path), replace(CARS, shards=2)
    make_folder(home.stream("cars") / "resident")
    feed = feed_of(home, stream)
    first = era_of(home, feed, committed=-1)
    assert first == Era(start=0, moving=False)
    second = begin_era(home, feed, first, start=0, moving=True)
    assert era_of(home, feed, committed=position_of(9, 0)) == second
    assert era_of(home, feed, committed=-1) == second, "nothing was told before it"
    kept = home.stream("cars") / "resident" / second.folder
    make_folder(kept)
    assert era_of(home, feed, committed=-1) == second
    assert kept.exists()
