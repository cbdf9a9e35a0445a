"""Who comes near the queries of a shard: cells, what shards say of their objects, how queries are dealt (S7)."""

from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.controls.rows import Drop, Register, Replace
from st_common.controls.writing import to_bytes
from st_common.engine.cross_shard import asked_by, asking_in, changes_kind
from st_common.geometry.circles import points_in_circles
from st_common.geometry.space import GLOBE, PLANE
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.guests.answering import Own, Told, joined
from st_common.operators.guests.cells import Cells, Extent, cells_around, numbers_of
from st_common.operators.guests.dealing import dealt_by_place, side_by_side
from st_common.operators.guests.hosting import hosted
from st_common.operators.guests.nearby import looks_nearby, nearby_of
from st_common.operators.guests.part_fixes import PartFixes, packets_with
from st_common.operators.guests.part_fixes import joined as joined_fixes
from st_common.operators.runtime.compiling import owners, owners_of
from st_common.operators.runtime.retire import retired
from st_common.operators.runtime.stages import step
from st_common.operators.runtime.stored import state_from_blob
from st_common.operators.state.registered import Queries, Registered
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.plan import Plan
from st_common.query.text import parse
from st_common.regions.registry import MovingBox, MovingCircle
from st_common.spark.exchange.eras import Era, knows_guests
from tests.kit.globe import neighbourhood

pytestmark = pytest.mark.spec("S7")
US = 1_000_000


def plan_in(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


# --- which queries look nearby, and how far


@pytest.mark.parametrize(
    ("text", "nearby"),
    [
        ("SELECT * FROM s INSIDE ('M', 'a', 500 m)", True),
        ("SELECT * FROM s INSIDE ('M', 'a', 5, 3) WHERE kind = 'bus'", True),
        ("SELECT speed_mps FROM s INSIDE ('M', 'a', 5 m) EMIT EVERY", True),
        ("SELECT COUNT(*) FROM s INSIDE ('M', 'a', 500 m)", False),
        ("SELECT RSTREAM (*) FROM s INSIDE ('M', 'a', 5 m)", False),
        ("SELECT * FROM s INSIDE ('M', 'a', 5 m) DETECT ENTER", False),
        ("SELECT * FROM s INSIDE (0, 0, 5, 5)", False),
        ("SELECT * FROM s KNN ('M', 3, 'a')", False),
        ("SELECT * FROM s a JOIN s b ON ST_DWithin(a, b, 3 m)", False),
    ],
)
def test_queries_look_nearby_that_ask_for_objects_around_one(text, nearby):
    assert looks_nearby(plan_in(text)) is nearby


def test_of_queries_around_one_object_the_farthest_counts():
    regions = [
        MovingCircle(focal="a", radius_m=5),
        MovingBox(focal="a", width=6, height=2),
        MovingBox(focal="b", width=4, height=8, metres=True),
    ]
    found = nearby_of(Plan(stream="s", inside=region) for region in regions)
    assert found.focals.ids.to_pylist() == ["a", "b"]
    extent = found.extent
    assert extent.radius_m.tolist() == [5, 0]
    assert (extent.half_width.tolist(), extent.half_height.tolist()) == ([3, 0], [1, 0])
    assert extent.half_width_m.tolist() == [0, 2]
    assert extent.half_height_m.tolist() == [0, 4]


# --- cells


def extent_of(**how) -> Extent:
    count = len(next(iter(how.values())))
    none = {name: np.zeros(count) for name in Extent.__dataclass_fields__}
    return Extent(**{**none, **{name: np.array(v, float) for name, v in how.items()}})


PLACE = st.one_of(
    st.floats(-1e3, 1e3), st.sampled_from((0.0, 1.0, -1e9, 1e9, 1e15, np.nan))
)
LENGTH = st.one_of(st.floats(0, 50), st.sampled_from((0.0, 1.0, 1e8, 1e-9)))


@given(
    st.lists(st.tuples(PLACE, PLACE, LENGTH), min_size=1, max_size=12),
    st.lists(st.tuples(PLACE, PLACE), max_size=20),
)
def test_who_is_in_a_circle_is_in_its_cells(circles, places):
    x, y, radius = (np.array(column) for column in zip(*circles, strict=True))
    cells = cells_around(x, y, extent_of(radius_m=radius), space=PLANE)
    px = np.array([place[0] for place in places])
    py = np.array([place[1] for place in places])
    _, inside = points_in_circles(x, y, radius, px, py, space=PLANE)
    assert cells.hold(px, py)[inside].all()
    assert (np.diff(cells.numbers) > 0).all()


@given(st.integers(0, 1 << 32), st.booleans())
def test_who_is_near_on_the_globe_is_in_the_cells(seed, in_metres):
    """Also across 180 degrees and next to a pole."""
    rng = Random(seed)
    around = neighbourhood(rng)
    x, y = (np.array(axis) for axis in zip(*around.places, strict=True))
    radius = np.full(len(x), rng.choice(around.radii))
    if not in_metres:
        extent = extent_of(radius_m=radius)
        _, inside = points_in_circles(x, y, radius, x, y, space=GLOBE)
        assert cells_around(x, y, extent, space=GLOBE).hold(x, y)[inside].all()
        return
    for focal in range(len(x)):
        extent = extent_of(half_width_m=radius[:1], half_height_m=radius[:1])
        cells = cells_around(x[[focal]], y[[focal]], extent, space=GLOBE)
        across, along = (scale[0] for scale in GLOBE.scale(y[[focal]]))
        ways = GLOBE.shortest(x - x[focal])
        inside = (np.abs(ways) * across <= radius) & (
            np.abs(y - y[focal]) * along <= radius
        )
        assert cells.hold(x, y)[inside].all()


def test_cells_are_few_however_large_a_region_is():
    extent = extent_of(radius_m=[1.0] * 99 + [1e7])
    x = np.arange(100.0)
    cells = cells_around(x, x, extent, space=PLANE)
    assert len(cells.numbers) < 5_000
    assert cells.hold(np.array([5e6]), np.array([5e6])).all()
    small = cells_around(x, x, extent_of(radius_m=[1.0] * 100), space=PLANE)
    assert not small.hold(np.array([5e6, np.nan]), np.array([5e6, 0.0])).any()


def test_nowhere_is_in_no_cell():
    assert numbers_of(
        np.array([np.nan, 1.0]), np.array([1.0, np.nan]), 1.0
    ).tolist() == [-1, -1]
    none = cells_around(
        np.array([np.nan]), np.array([0.0]), extent_of(radius_m=[5.0]), space=PLANE
    )
    assert not len(none.numbers)


# --- how queries are dealt


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=60),
    st.integers(1, 9),
)
def test_places_are_dealt_in_equal_groups(places, groups):
    x = np.array([place[0] for place in places])
    y = np.array([place[1] for place in places])
    count = np.bincount(side_by_side(x, y, groups), minlength=groups)
    assert len(count) == groups
    assert count.max() - count.min() <= max(np.ceil(np.log2(groups)), 1)


def test_places_side_by_side_are_in_one_group():
    x, y = np.array([0.0, 1, 50, 51, 0, 1, 50, 51]), np.repeat([0.0, 9.0], 4)
    assert side_by_side(x, y, 2).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert side_by_side(x, y, 4).tolist() == [0, 0, 2, 2, 1, 1, 3, 3]


def query_around(name, focal, **how):
    plan = Plan(stream="s", inside=MovingBox(focal=focal, width=4, height=4), **how)
    return Registered(name=name, version=1, plan=plan)


def fixes_of(rows):
    """Fixes: (object, seconds, x, y) each."""
    return pa.table(
        {
            "row": pa.array(range(len(rows)), pa.int32()),
            "object": pa.array([row[0] for row in rows]).dictionary_encode(),
            "event_ts": pa.array([int(row[1] * US) for row in rows], pa.int64()),
            "x": pa.array([float(row[2]) for row in rows]),
            "y": pa.array([float(row[3]) for row in rows]),
            "gone": pa.array([False] * len(rows)),
            "load": pa.array([row[1] for row in rows], pa.int64()),
        }
    )


def packets(segment, rows, shards, following=()):
    return pack(
        segment,
        fixes_of(rows),
        rows=len(rows),
        rejects=0,
        shards=shards,
        following=following,
    )


def state_of(rows, *queries, shards=1, shard=0):
    """What a shard knows behind segment 0."""
    (read,) = [packets(0, rows, shards)[shard]]
    settings = Settings(shard=shard, shards=shards, hosted=True)
    done = step(State(queries=Queries(queries)), [read], settings, no_layer)
    return done.state


def no_layer(layer, version):
    raise AssertionError((layer, version))


def test_queries_are_dealt_by_the_places_of_their_objects():
    rows = [(f"o{n}", n, n * 10, 0) for n in range(6)]
    queries = [query_around(f"q{n}", f"o{n}") for n in range(6)]
    counts = Registered(name="n", version=1, plan=plan_in("SELECT COUNT(*) FROM s"))
    lost = query_around("lost", "nobody")
    state = dealt_by_place(state_of(rows, *queries, counts, lost), {1, 4})
    assert [one.dealt for one in state.queries] == [1, 1, 1, 4, 4, 4, None, None]
    by_name = owners_of(["n", "lost"], 5).tolist()
    assert owners(state.queries, 5).tolist() == [1, 1, 1, 4, 4, 4, *by_name]
    again = state_from_blob(state.to_blob())
    assert again.queries == state.queries


def test_a_query_that_takes_the_place_of_another_stays_with_its_shard():
    state = state_of([("a", 1, 0, 0)], replace(query_around("q", "a"), dealt=3))
    row = Replace(
        query="q", version=2, plan=query_around("q", "a", where="x > 0").plan.to_json()
    )
    done = step(state, [control(1, row)], Settings(), no_layer)
    assert [(one.version, one.live, one.dealt) for one in done.state.queries] == [
        (1, False, 3),
        (2, True, 3),
    ]


def control(segment, *rows) -> Packet:
    return control_packet(segment, b"".join(map(to_bytes, rows)))


def test_it_is_known_by_rows_and_by_queries_who_asks_nearby_and_who_of_anybody():
    nearby, anybody = query_around("q", "a"), plan_in("SELECT COUNT(*) FROM s")
    rows = [
        Register(query="q", version=1, plan=nearby.plan.to_json()),
        Register(query="n", version=1, plan=anybody.to_json()),
    ]
    shard_of = {name: owners_of([name], 4).tolist()[0] for name in "qn"}
    asking = asked_by(rows, 4)
    assert (asking.nearby, asking.anywhere) == ({shard_of["q"]}, {shard_of["n"]})
    counted = Registered(name="n", version=1, plan=anybody)
    assert asking_in(Queries([nearby, counted]), 4) == asking
    dropped = Queries([nearby, replace(counted, live=False)])
    assert asking_in(dropped, 4).anywhere == frozenset()
    assert not changes_kind(rows)
    assert changes_kind([Replace(query="q", version=2, plan=anybody.to_json())])
    assert not changes_kind([Replace(query="q", version=2, plan=nearby.plan.to_json())])


def test_shards_know_guests_where_that_spares_many_of_them_all_objects():
    era, some = Era(start=0, following=frozenset()), frozenset(range(3))
    asking = asked_by([], 8)
    assert not knows_guests(era, asking, shards=8)
    assert knows_guests(era, asking._replace(nearby=some), shards=8)
    assert not knows_guests(era, asking._replace(nearby=frozenset({1, 2})), shards=8)
    assert not knows_guests(era, asking._replace(nearby=some, anywhere=some), shards=8)
    assert not knows_guests(era, asking._replace(nearby=frozenset({0, 1})), shards=2)
    known = replace(era, by_reach=True)
    assert knows_guests(known, asking._replace(nearby=frozenset({1})), shards=8)
    assert not knows_guests(known, asking, shards=8)
    assert Era.from_json(known.to_json()) == known
    assert known.folder != era.folder


# --- what shards say, and what one asks


def test_packets_take_more_fixes_in_log_order():
    rows = [("a", 1, 0, 0), ("b", 2, 1, 1), ("c", 3, 2, 2), ("a", 4, 3, 3)]
    shards = 3
    own = packets(5, rows, shards)
    every = packets(5, rows, 1)[0]
    for shard in range(shards):
        others = [PartFixes.of([own[n]]) for n in range(shards) if n != shard]
        (packet,) = packets_with([own[shard]], joined_parts(others))
        assert packet.positions().tolist() == every.positions().tolist()
        ids = packet.objects.take(pa.array(packet.code)).to_pylist()
        assert ids == [row[0] for row in rows]
        assert packet.attributes["load"].to_pylist() == [1, 2, 3, 4]
        assert packet.ts.tolist() == every.ts.tolist()


def joined_parts(parts):
    return joined_fixes(parts)


def test_fixes_go_into_the_packet_of_their_segment():
    first, second = (
        packets(5, [("a", 1, 0, 0)], 1)[0],
        packets(6, [("b", 2, 0, 0)], 1)[0],
    )
    more = PartFixes.of([packets(5, [("c", 1, 5, 5), ("d", 2, 6, 6)], 1)[0]])
    one, other = packets_with([first, second], more.at(np.array([1])))
    assert one.objects.take(pa.array(one.code)).to_pylist() == ["a", "d"]
    assert other is second


def own_of(rows, more, *, shard, shards):
    state = state_of(rows, shards=shards, shard=shard)
    fixes = PartFixes.of([packets(1, more, shards)[shard]])
    return Own(state, fixes, shard, shards)


ROWS = [(f"o{n}", 1, n, 0) for n in range(20)]
MORE = [("o3", 2, 100, 0), ("new", 2, 4, 0), ("o5", 2, 5.5, 0)]


def owns(shards):
    return [own_of(ROWS, MORE, shard=n, shards=shards) for n in range(shards)]


def ids_in(told):
    return sorted(told.state.objects.ids.to_pylist()), sorted(
        told.fixes.objects.take(pa.array(told.fixes.code)).to_pylist()
    )


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_say_who_is_in_some_cells_before_a_part_or_in_it(shards):
    cells = Cells(
        side=1.0, numbers=np.sort(numbers_of(np.array([3.0, 4.0]), np.zeros(2), 1.0))
    )
    nobody = np.empty(0, np.uint64)
    told = joined([own.nearby(cells, nobody) for own in owns(shards)])
    # o3 was there and leaves, o4 stays, the new one comes.
    assert ids_in(told) == (["o3", "o4"], ["new", "o3"])
    known = np.sort(told.state.objects.hashes)
    again = joined([own.nearby(cells, known) for own in owns(shards)])
    assert ids_in(again) == ([], ["new"])


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_say_what_is_asked_for_by_name(shards):
    every = joined(
        [
            own.nearby(
                Cells(
                    side=1e9, numbers=np.sort(numbers_of(np.zeros(1), np.zeros(1), 1e9))
                ),
                np.empty(0, np.uint64),
            )
            for own in owns(shards)
        ]
    )
    hashes = dict(
        zip(
            every.state.objects.ids.to_pylist(),
            every.state.objects.hashes.tolist(),
            strict=True,
        )
    )
    asked = np.sort(np.array([hashes["o3"], hashes["o7"], 12345], np.uint64))
    new = np.array([hashes["o7"]], np.uint64)
    told = joined([own.named(asked, new) for own in owns(shards)])
    assert ids_in(told) == (["o7"], ["o3"])
    assert told.state.fixes.x.tolist() == [7.0]
    assert told.state.fixes.attributes["load"].to_pylist() == [1]


def test_what_is_said_survives_its_bytes():
    (own,) = owns(1)
    every = Cells(side=1e9, numbers=np.sort(numbers_of(np.zeros(1), np.zeros(1), 1e9)))
    told = own.nearby(every, np.empty(0, np.uint64))
    again = Told.from_blob(told.to_blob())
    assert ids_in(again) == ids_in(told)
    assert again.state.pending.tick == told.state.pending.tick == US
    assert again.state.pending.objects.tolist() == told.state.pending.objects.tolist()
    assert again.state.fixes.x.tolist() == told.state.fixes.x.tolist()
    assert (
        again.fixes.attributes["load"].to_pylist()
        == told.fixes.attributes["load"].to_pylist()
    )
    nothing = own.named(np.empty(0, np.uint64), np.empty(0, np.uint64))
    empty = Told.from_blob(nothing.to_blob())
    assert (len(empty.state.objects), len(empty.fixes)) == (0, 0)


class Answers:
    """Other shards, and how often they were asked."""

    def __init__(self, owns):
        self.owns, self.asked = owns, 0

    def named(self, hashes, new):
        self.asked += 1
        return [own.named(hashes, new) for own in self.owns]

    def nearby(self, cells, known):
        self.asked += 1
        return [own.nearby(cells, known) for own in self.owns]


def test_a_shard_knows_who_is_near_and_lets_go_who_is_not():
    """One query goes with o3, in the shard that its name falls to; o3 moves from 3 to 100."""
    shards = 5
    query = query_around("q", "o3")
    (shard,) = owners_of(["q"], shards).tolist()
    settings = Settings(shard=shard, shards=shards, hosted=True)
    state = state_of(ROWS, query, shards=shards, shard=shard)
    own = set(state.objects.ids.to_pylist())
    others = Answers([one for one in owns(shards) if one.shard != shard])
    state, read = hosted(
        state, [packets(1, MORE, shards)[shard]], settings, others, is_first=True
    )
    # A box of 4 x 4 around 3, and around 100: cells have a side of 4.
    guests = set(state.objects.ids.to_pylist()) - own
    assert {"o1", "o2", "o3", "o4", "o5"} <= guests | own
    assert not {"o12", "o15", "o19"} & guests
    state = step(state, read, settings, no_layer).state
    # At 9 s the tick at 2 s is judged, and o1 to o5 are members no more; at 10 s nobody names them.
    for segment, at_s in ((2, 9), (3, 10)):
        last = packets(segment, [("o3", at_s, 100, 0)], 1)
        state, read = hosted(
            state, last, settings, Answers([]), is_first=False, least=0
        )
        state = step(state, read, settings, no_layer).state
    left = set(state.objects.ids.to_pylist()) - own
    assert left <= {"o3", "new"}, "the new one is its own, or is gone"


def test_a_shard_without_such_queries_asks_nobody():
    settings = Settings(shard=0, shards=2, hosted=True)
    state, others = state_of(ROWS, shards=2), Answers(owns(2)[1:])
    read = [packets(1, MORE, 2)[0]]
    assert hosted(state, read, settings, others, is_first=True) == (state, read)
    assert others.asked == 0


# --- the order of changes


def test_changes_are_in_order_of_registration_whatever_shards_have_forgotten():
    names = ["q0", "q1", "q2", "q3", "q4", "q5"]
    rows = [
        Register(query=name, version=1, plan=query_around(name, "a").plan.to_json())
        for name in names
    ]
    dropped = [Drop(query=name) for name in names[:3]]
    start = [control(0, *rows), control(1, *dropped)]
    fixes = [("a", 1, 0, 0), ("b", 1, 1, 1), ("b", 5, 1, 1)]
    told = []
    for forgets in (False, True):
        changes = []
        for shard in range(3):
            settings = Settings(shard=shard, shards=3)
            state = step(State(), start, settings, no_layer).state
            if forgets and shard == 1:
                state = retired(state, settings, least=0)
            (packet,) = pack(2, fixes_of(fixes), rows=3, rejects=0, shards=1)
            changes.append(step(state, [packet], settings, no_layer).changes)
        told.append(settled(changes)["query"].to_pylist())
    assert told[0] == told[1] == ["q3", "q4", "q5"]
