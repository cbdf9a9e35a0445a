"""Ids of objects: two that share a hash are two, and the key of the hashes is the home's own."""

import json
import random
import stat

import numpy as np
import pyarrow as pa
import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import PUBLIC_ID_KEY
from st_common.engine.local import LocalEngine
from st_common.engine.reshard import of_local, reshard
from st_common.engine.run import run
from st_common.engine.topology import frozen, home_key
from st_common.errors import StateError
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state import intern
from st_common.operators.state.intern import Interner, Sought, hashes_of
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules

PAIR = (
    "mjkjjfodaodblcfm",
    "kbdjbnemhnaablhb",
)  # one hash, under the key that pandas has by default
BOX = Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=10, maxy=10)).to_json()


def log_of(home, fixes, cuts):
    """A log of a query of a box and of fixes (object, second, x)."""
    rows = [
        Control(
            position=0,
            row={
                "op": "register",
                "query": "q",
                "version": 1,
                "plan": BOX,
                "text": "",
                "owner": "t",
            },
        )
    ]
    rows += [
        Fix(position=0, object=name, event_us=at * 1_000_000, x=x, y=5.0)
        for name, at, x in fixes
    ]
    return write_log(home.log("grid"), rows, cuts)


def home_with_the_public_key(folder):
    home = Home(folder)
    (folder / "id.key").write_text(json.dumps({"key": PUBLIC_ID_KEY}))
    return home


def told(home):
    rows = tables.read(home.table("changes", "grid")).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )
    return [(row["object"], row["sign"], row["cause"]) for row in rows.to_pylist()]


@pytest.mark.spec("S4", "X6")
@pytest.mark.parametrize(
    "cuts", [[], [2], [2, 3, 4]], ids=["one segment", "two", "each its own"]
)
def test_two_ids_with_one_hash_are_two_objects(tmp_path, cuts):
    home, stream = home_with_the_public_key(tmp_path), settings_of("grid", Rules())
    one, other = PAIR
    log_of(
        home, [(one, 1, 5.0), (other, 1, 5.0), (one, 2, 50.0), (other, 3, 6.0)], cuts
    )
    run(home, stream, until_idle=True)
    assert told(home) == [(one, 1, "enter"), (other, 1, "enter"), (one, -1, "leave")]
    write_log(
        home.log("grid"),
        [Fix(position=0, object=other, event_us=4_000_000, x=60.0, y=5.0)],
    )
    run(home, stream, until_idle=True)  # from the stored state
    assert told(home)[-1] == (other, -1, "leave")


def test_ids_with_one_hash_go_over_to_other_shards(tmp_path):
    home, stream = (
        home_with_the_public_key(tmp_path),
        settings_of("grid", Rules(), shards=3),
    )
    one, other = PAIR
    log_of(home, [(one, 1, 5.0), (other, 1, 5.0), ("c", 1, 5.0)], [])
    run(home, stream, until_idle=True)
    done = reshard(home, stream, engine="spark", shards=3, export=of_local)
    assert (done.after.shards, done.objects) == (3, 3)


@pytest.mark.parametrize("following", [(0, 1), (1,), ()])
def test_ids_with_one_hash_stay_two_through_shards_and_back(tmp_path, following):
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    log_of(home, [(PAIR[0], 1, 5.0), (PAIR[1], 1, 5.0), ("c", 1, 5.0)], [])
    engine = LocalEngine(home, stream)
    engine.batch()
    engine.abandon()
    parts = split(engine.state, shards=2, following=following)
    again = joined(parts, following=following)
    assert sorted(again.objects.ids.to_pylist()) == sorted([*PAIR, "c"])
    assert len(again.answer) == 3


def test_an_interner_of_ids_with_few_hashes_finds_each_and_no_other(monkeypatch):
    whole = intern._siphash
    monkeypatch.setattr(intern, "_siphash", lambda texts, key: whole(texts, key) % 7)
    rng, known, interner = random.Random(3), [], Interner.empty()
    for _ in range(30):
        asked = [f"o{n}" for n in rng.sample(range(200), 9)]
        ids = pa.array(asked)
        found = interner.find(hashes_of(ids), ids)
        assert found.tolist() == [
            known.index(name) if name in known else -1 for name in asked
        ]
        new = pa.array(found < 0)
        interner = interner.with_new(hashes_of(ids)[found < 0], ids.filter(new))
        known += ids.filter(new).to_pylist()
        assert interner.number_of(known[-1]) == len(known) - 1
        assert interner.number_of("nobody") == -1


def test_a_few_new_ids_do_not_rebuild_the_table_of_all():
    ids = pa.array([f"o{n}" for n in range(20_000)])
    interner = Interner.empty().with_new(hashes_of(ids), ids)
    assert interner.number_of("o7") == 7
    more = pa.array([f"n{n}" for n in range(1_000)])
    grown = interner.with_new(hashes_of(more), more)
    assert grown.places_of(Sought(pa.array(["n5", "o5", "x"]))).tolist() == [
        20_005,
        5,
        -1,
    ]
    assert grown._large is interner._large
    many = pa.array([f"m{n}" for n in range(20_000)])
    larger = grown.with_new(hashes_of(many), many)
    assert larger.number_of("m9") == 21_009
    assert larger._large.end == 41_000


@pytest.mark.spec("S4")
def test_the_key_of_a_home_is_random_made_once_and_for_its_owner_alone(tmp_path):
    home, other = Home(tmp_path / "a"), Home(tmp_path / "b")
    key = home_key(home)
    assert home_key(home) == key
    assert key not in (home_key(other), PUBLIC_ID_KEY)
    assert stat.S_IMODE((home.root / "id.key").stat().st_mode) == 0o600


def test_a_stream_keeps_its_key_whatever_becomes_of_the_homes(tmp_path):
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    kept = frozen(home, stream, engine="local", shards=1).id_key
    assert kept == home_key(home) != PUBLIC_ID_KEY
    topology = home.stream("grid") / "topology.json"
    assert stat.S_IMODE(topology.stat().st_mode) == 0o600
    (tmp_path / "id.key").unlink()
    assert frozen(home, stream, engine="local", shards=1).id_key == kept
    record = json.loads(topology.read_text())
    del record["id_key"], record["crc32"]  # of a version that had no keys
    topology.write_text(json.dumps(record))
    assert frozen(home, stream, engine="local", shards=1).id_key == PUBLIC_ID_KEY


def test_a_damaged_key_says_so(tmp_path):
    (tmp_path / "id.key").write_text("{")
    with pytest.raises(StateError, match=r"id\.key holds no key"):
        home_key(Home(tmp_path))


def test_a_state_under_another_key_is_refused_and_takes_no_object_for_a_new_one(
    tmp_path,
):
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    log_of(home, [("a", 1, 5.0)], [])
    run(home, stream, until_idle=True)
    path = home.stream("grid") / "topology.json"
    record = json.loads(path.read_text()) | {"id_key": "another-key-of16"}
    del record["crc32"]
    path.write_text(json.dumps(record))
    write_log(
        home.log("grid"),
        [Fix(position=0, object="a", event_us=2_000_000, x=50.0, y=5.0)],
    )
    with pytest.raises(
        StateError, match=r"hashed by another key than the stream's.*topology\.json"
    ):
        run(home, stream, until_idle=True)


def test_keys_deal_ids_out_to_other_shards():
    ids = pa.array([f"o{n}" for n in range(1_000)])
    one, other = hashes_of(ids, "k" * 16), hashes_of(ids, "l" * 16)
    assert not np.array_equal(one % np.uint64(4), other % np.uint64(4))
