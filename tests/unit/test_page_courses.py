"""How many were in over the last hour: as counted by hand over the table, however the looks at it lie."""

import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from st_common import tables
from st_common.answers import courses
from st_common.answers.courses import MINUTES, Courses
from st_common.answers.tallies import Tallies
from tests.kit.server_http import Engine, served
from tests.kit.server_page import fix, place_in, post

pytestmark = pytest.mark.spec("P10")

T0_S = 1_700_000_000
BOX = "SELECT * FROM ships INSIDE (0, 0, 10, 10)"
NEAR = "SELECT * FROM ships KNN (3, 5, 5)"
MANY = "SELECT draught, count(*) FROM ships INSIDE (0, 0, 10, 10) GROUP BY draught"
STILL = "SELECT * FROM ships INSIDE (80, 80, 81, 81)"
QUERIES = {"box": BOX, "near": NEAR, "many": MANY, "still": STILL}


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        for name, text in QUERIES.items():
            told = client.put(f"/v1/queries/{name}", content=text)
            assert told.status_code == 201, told.text
        yield client


def voyages(minutes, seed):
    """A fix of each of 12 ships every 40 seconds, in the box as often as not; one ship does not move at all."""
    made = random.Random(seed)
    texts, time_s = [], 0
    while time_s < minutes * 60:
        rows = [
            fix(f"s{k}", T0_S + time_s + k, made.uniform(0, 20), 5, draught=k % 3)
            for k in range(12)
        ]
        rows.append(fix("moored", T0_S + time_s, 80.5, 80.5))
        texts.append("".join(rows))
        time_s += 40
    return texts


def by_hand(place, newest_s):
    """How many were in each answer at the end of each minute of the hour: each row of the table, one by one."""
    rows = tables.read(place.home.table("changes", "ships")).to_pylist()
    last = datetime.fromtimestamp(newest_s - newest_s % 60, UTC)
    counted = {}
    for name in QUERIES:
        mine = [row for row in rows if row["query"] == name]
        ends = [last - timedelta(minutes=k - 1) for k in reversed(range(1, MINUTES))]
        counts = [
            sum(row["sign"] for row in mine if row["event_ts"] < end) for end in ends
        ]
        counted[name] = [*counts, sum(row["sign"] for row in mine)]
    return counted


def looked(place, kept, newest_s):
    tallies = Tallies().look(place.home, "ships")
    return kept.look(place.home, "ships", tallies, newest_s * 1_000_000)


def with_flat(course, place, newest_s):
    """The counts of a course, and of queries without a change what is counted now."""
    flat = by_hand(place, newest_s)
    return {
        name: course.counts.get(name, [flat[name][-1]] * MINUTES) for name in QUERIES
    }


def test_a_course_is_what_is_counted_by_hand_at_each_look(place, client):
    engine, kept = Engine(place, "ships"), Courses()
    try:
        assert looked(place, kept, T0_S) is None
        texts = voyages(90, seed=7)
        for begin in range(0, len(texts), 27):
            post(client, "ships", "".join(texts[begin : begin + 27]))
            engine.work()
            newest_s = T0_S + (min(begin + 27, len(texts)) - 1) * 40 + 11
            course = looked(place, kept, newest_s)
            assert course.known == MINUTES
            hand = by_hand(place, newest_s)
            assert with_flat(course, place, newest_s) == hand
            assert looked(place, Courses(), newest_s) == course
    finally:
        engine.close()
    assert len(set(hand["box"])) > 4
    assert "still" not in course.counts


def test_what_is_not_read_yet_is_not_known(place, client, monkeypatch):
    monkeypatch.setattr(courses, "_BUDGET_S", -1.0)
    engine, kept = Engine(place, "ships"), Courses()
    try:
        texts = voyages(62, seed=3)
        post(client, "ships", "".join(texts[:-3]))
        engine.work()
        newest_s = T0_S + (len(texts) - 4) * 40 + 11
        known = []
        for texts_now in ("", texts[-3], texts[-2], texts[-1]):
            if texts_now:  # what comes between two looks back is counted once
                post(client, "ships", texts_now)
                engine.work()
                newest_s += 40
            course = looked(place, kept, newest_s)
            known.append(course.known)
            hand = by_hand(place, newest_s)
            for name, counts in course.counts.items():
                unknown = MINUTES - course.known
                assert counts[:unknown] == [None] * unknown
                assert counts[unknown:] == hand[name][unknown:]
    finally:
        engine.close()
    assert known[0] == 5
    assert known == sorted(known)
    assert known[-1] == MINUTES


def test_the_page_asks_for_all_courses_at_once(place, client):
    engine = Engine(place, "ships")
    try:
        post(client, "ships", "".join(voyages(5, seed=1)))
        engine.work()
    finally:
        engine.close()
    client.get("/page/live/ships")
    end_s = time.monotonic() + 120
    while not (told := client.get("/page/courses").json())["streams"]:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert told["minutes"] == MINUTES
    ships = told["streams"]["ships"]
    newest_s = int(datetime.fromisoformat(ships["until"]).timestamp())
    hand = by_hand(place, newest_s)
    assert ships["queries"]["box"] == hand["box"]
    assert ships["known"] == MINUTES


def test_who_came_and_left_is_counted_while_somebody_looks(place, client):
    engine = Engine(place, "ships")

    def state_until(is_so):
        end_s = time.monotonic() + 120
        while True:
            state = client.get("/page/state").json()
            box = next(one for one in state["queries"] if one["name"] == "box")
            if is_so(box):
                return box
            assert time.monotonic() < end_s, box
            time.sleep(0.1)

    try:
        post(client, "ships", fix("a", T0_S, 1, 1) + fix("b", T0_S, 2, 2))
        engine.work()
        box = state_until(lambda box: box["came"] is not None)
        assert (box["members"], box["came"], box["left"]) == (2, 0, 0)
        post(client, "ships", fix("a", T0_S + 5, 50, 50) + fix("c", T0_S + 5, 3, 3))
        post(client, "ships", fix("d", T0_S + 6, 3, 3))
        engine.work()
        box = state_until(lambda box: box["came"])
        assert (box["members"], box["came"], box["left"]) == (3, 2, 1)
    finally:
        engine.close()
