"""Where objects are now, as the page reads it: all once, then those that moved, in the coordinates of a map."""

import json

import numpy as np
import pytest

from st_common.log.record_settings import log_for
from tests.kit.server_http import Engine, served
from tests.kit.server_page import CSV, fix, place_in, post, unpacked

pytestmark = pytest.mark.spec("P10")

MOVES = ("index", "heading", "speed")


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


@pytest.fixture
def engine_of(place):
    made = []

    def make(name):
        made.append(Engine(place, name))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Looker:
    """The page's side: it knows where each object is by what it was told so far."""

    def __init__(self, client, stream):
        self.client, self.stream = client, stream
        self.cursor, self.names, self.places = None, [], {}

    def look(self):
        params = {} if self.cursor is None else {"since": self.cursor}
        told = self.client.get(f"/page/live/{self.stream}", params=params)
        assert told.status_code == 200, told.text
        self.header, self.arrays = unpacked(told.content)
        if self.header["reset"]:
            self.names, self.places = [], {}
        assert self.header["names"]["from"] == len(self.names)
        self.names += self.header["names"]["names"]
        self.cursor = self.header["cursor"]
        for index, lon, lat in zip(
            *(self.arrays[name].tolist() for name in ("index", "lon", "lat")),
            strict=True,
        ):
            self.places[self.names[index]] = (lon, lat)
        return sorted(self.names[index] for index in self.arrays["index"].tolist())

    def shown(self):
        return {name: at for name, at in self.places.items() if not np.isnan(at[0])}


def test_what_moved_is_told_to_each_who_looks_without_an_engine(client):
    one, other = Looker(client, "ships"), Looker(client, "ships")
    assert one.look() == []
    post(client, "ships", fix("a", 1, 10, 50) + fix("b", 1, 11, 51))
    assert one.look() == ["a", "b"]
    post(client, "ships", fix("b", 2, 12, 52) + fix("c", 2, 13, 53))
    assert (one.look(), one.header["reset"]) == (["b", "c"], False)
    assert (one.look(), one.header["count"]) == ([], 0)
    assert other.look() == ["a", "b", "c"]
    assert one.shown() == other.shown() == {"a": (10, 50), "b": (12, 52), "c": (13, 53)}
    assert one.header["latest_event_ts"] == "1970-01-01T00:00:02.000Z"
    assert one.header["lag_s"] == 0


def test_the_newest_fix_by_event_time_counts_wherever_it_stands(client):
    looker = Looker(client, "ships")
    post(client, "ships", fix("a", 5, 1, 1) + fix("a", 9, 2, 2) + fix("a", 7, 3, 3))
    looker.look()
    assert looker.places["a"] == (2, 2)
    post(client, "ships", fix("a", 8, 4, 4) + fix("a", 9, 5, 5))
    assert looker.look() == []
    post(client, "ships", fix("a", 10, 6, 6))
    assert (looker.look(), looker.places["a"]) == (["a"], (6, 6))


def test_who_is_gone_or_silent_is_taken_off_and_comes_back(client):
    looker = Looker(client, "ships")
    post(client, "ships", fix("a", 1, 1, 1) + fix("b", 1, 2, 2) + fix("c", 90, 3, 3))
    assert looker.look() == ["a", "b", "c"]
    post(client, "ships", json.dumps({"id": "b", "t": 95, "gone": "true"}) + "\n")
    assert (looker.look(), set(looker.shown())) == (["b"], {"a", "c"})
    post(client, "ships", fix("c", 150, 3, 4))
    assert (looker.look(), set(looker.shown())) == (["a", "c"], {"c"})
    late = Looker(client, "ships")
    assert late.look() == ["c"]
    post(client, "ships", fix("a", 151, 7, 7) + fix("b", 152, 8, 8))
    looker.look()
    assert set(looker.shown()) == {"a", "b", "c"}


def test_direction_and_speed_follow_from_the_last_two_fixes(client):
    post(client, "ships", fix("north", 0, 10, 0) + fix("east", 0, 179.999, 0))
    looker = Looker(client, "ships")
    looker.look()
    assert np.isnan(looker.arrays["heading"]).all()
    assert np.isnan(looker.arrays["speed"]).all()
    post(client, "ships", fix("north", 10, 10, 0.001) + fix("east", 10, -179.999, 0))
    looker.look()
    told = zip(*(looker.arrays[name].tolist() for name in MOVES), strict=True)
    by_name = {looker.names[index]: tuple(way) for index, *way in told}
    assert by_name["north"] == pytest.approx((0.0, 11.0574), abs=0.01)
    assert by_name["east"] == pytest.approx((90.0, 22.2639), abs=0.01)
    post(client, "ships", fix("east", 20, -179.999, 0))
    looker.look()
    assert looker.arrays["heading"].tolist() == [90.0]
    assert looker.arrays["speed"].tolist() == [0.0]


def test_what_the_archive_has_and_what_the_log_has_behind_it_are_one(
    place, client, engine_of
):
    engine = engine_of("ships")
    post(client, "ships", fix("a", 1, 1, 1) + fix("b", 1, 2, 2))
    engine.work()
    post(client, "ships", fix("b", 2, 3, 3) + fix("c", 2, 4, 4))
    with served(place) as again:
        looker = Looker(again, "ships")
        assert looker.look() == ["a", "b", "c"]
        assert looker.places == {"a": (1, 1), "b": (3, 3), "c": (4, 4)}
        rows = again.get("/v1/objects", params={"stream": "ships"}).json()["rows"]
        assert {row["object"]: (row["x"], row["y"]) for row in rows} == looker.places


def test_a_cursor_of_a_server_that_ended_begins_anew(place, client):
    looker = Looker(client, "ships")
    post(client, "ships", fix("a", 1, 1, 1))
    looker.look()
    with served(place) as again:
        looker.client = again
        assert looker.look() == ["a"]
        assert looker.header["reset"]
    looker.client = client
    for wrong in ("", "x", "a.b.c.d", "1.2.-3.4"):
        looker.cursor = wrong
        looker.look()
        assert looker.header["reset"]


def test_planes_lie_at_a_pretend_place_that_stays(client):
    post(client, "cars", "id,t,x,y\na,1,0,0\nb,1,2000,0\nc,1,2000,1000\n", CSV)
    looker = Looker(client, "cars")
    looker.look()
    (ax, ay), (bx, by), (cx, cy) = (looker.places[name] for name in "abc")
    assert max(map(abs, (ax, ay, bx, by, cx, cy))) <= 1
    assert (bx - ax) == pytest.approx(2 * (cy - by))
    assert (bx, by) == (cx, ay)
    post(client, "cars", "id,t,x,y\nd,2,4000,0\n", CSV)
    assert looker.look() == ["d"]
    assert looker.places["d"][0] - bx == pytest.approx(bx - ax)


def test_filtered_fixes_move_nobody_and_held_ones_wait(place, client):
    looker = Looker(client, "taxis")
    post(client, "taxis", "id,t,x,y\na,1,10,50\n", CSV)
    post(client, "taxis", "id,t,x,y\na,2,20,50\n", CSV)  # 700 km in a second
    looker.look()
    assert looker.places == {}
    post(client, "taxis", "id,t,x,y\nb,9,11,51\n", CSV)
    looker.look()
    assert looker.places == {"a": (10, 50)}
    post(client, "taxis", "id,t,x,y\nb,20,11,51\n", CSV)
    looker.look()
    assert looker.places == {"a": (10, 50), "b": (11, 51)}


def test_a_damaged_segment_is_told_and_not_passed_over(place, client):
    post(client, "ships", fix("a", 1, 1, 1))
    (segment,) = place.home.log("ships").rglob("*.seg")
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(bytes(data))
    told = client.get("/page/live/ships")
    assert told.status_code == 500
    assert "damaged" in told.json()["error"]
    assert str(place.home.root) not in told.text


def test_a_stream_that_there_is_not_is_told(client):
    told = client.get("/page/live/boats")
    assert (told.status_code, told.json()["error"]) == (
        404,
        "there is no stream 'boats'",
    )


def test_many_objects_are_told_whole(place, client):
    stream = place.stream("ships")
    log = log_for(place.home, stream)
    lines = "".join(fix(f"s{n}", 1, n % 360 - 180, n % 180 - 90) for n in range(20_000))
    log.append(lines.encode(), arrival_us=1_000_000)
    looker = Looker(client, "ships")
    assert len(looker.look()) == 20_000
    assert looker.places["s19999"] == (19_999 % 360 - 180, 19_999 % 180 - 90)
