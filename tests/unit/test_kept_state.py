"""What a shard keeps in Spark's state store: it forgets as the local engine does, and tells the same."""

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from st_common.config.home import Home
from st_common.engine.packets import packets, step_settings
from st_common.errors import StateError
from st_common.log.log import Log
from st_common.operators.runtime.stages import step
from st_common.operators.turn.changes import settled
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from st_common.spark.continuous import kept_state
from st_common.spark.continuous.kept_state import KeptState
from tests.kit import oracle
from tests.kit.laws import told, told_by_oracle
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules
from tests.kit.strategies import SECOND_US

BOX = Plan(stream="grid", inside=Box(minx=0, miny=0, maxx=10, maxy=10)).to_json()
RULES = Rules(silence_us=5 * SECOND_US)


class Map(dict):
    """A map of Spark's state store; `asked` lists what it is asked for."""

    def __init__(self, asked):
        super().__init__()
        self.asked = asked

    def getValue(self, key):  # noqa: N802 - Spark's name
        self.asked.append("get")
        return self.get(key)

    def updateValue(self, key, value):  # noqa: N802 - Spark's name
        self.asked.append("update")
        self[key] = value

    def removeKey(self, key):  # noqa: N802 - Spark's name
        self.asked.append("remove")
        del self[key]


class Store:
    """Spark's state store of one key; each word of `asked` is a message to the JVM and back."""

    def __init__(self):
        self.variables, self.asked = {}, []

    def getMapState(self, name, *schemas):  # noqa: N802 - Spark's name
        return self._variable(Map, name, *schemas)

    def _variable(self, kind, name, *schemas):
        for schema in schemas:
            # Spark has the JVM parse a text when it opens the variable, and again when it wraps it.
            self.asked += ["parse"] * 2 * isinstance(schema, str)
        self.asked.append("open")
        return self.variables.setdefault(name, kind(self.asked))

    @property
    def entries(self):
        """What the map of a shard holds."""
        return {entry: blob for (entry,), (blob,) in self.variables["state"].items()}

    @property
    def head(self):
        return json.loads(self.entries["head"])

    def size(self, kind=""):
        """How many bytes the entries of a kind have."""
        return sum(
            len(blob) for name, blob in self.entries.items() if name.startswith(kind)
        )


def query(op, name):
    row = {"op": op, "query": name}
    row |= (
        {"version": 1, "plan": BOX, "text": "", "owner": "t"}
        if op == "register"
        else {}
    )
    return Control(position=0, row=row)


def rows_of(count):
    """Objects and queries that come one after another, and go."""
    rows = [query("register", "kept")]
    for number in range(count):
        rows.append(
            Fix(
                position=0,
                object=f"o{number}",
                event_us=(1 + number) * SECOND_US,
                x=1.0,
                y=1.0,
            )
        )
        rows += [query("register", f"q{number}"), query("drop", f"q{number}")]
    return tuple(replace(row, position=number) for number, row in enumerate(rows))


@pytest.mark.spec("S4", "X1")
@pytest.mark.parametrize("shards", [1, 3])
def test_shards_forget_ids_and_queries_that_come_and_go(tmp_path, monkeypatch, shards):
    monkeypatch.setattr(kept_state, "LEAST", 10)
    monkeypatch.setattr(kept_state, "_LEAST_JOURNAL", 1 << 14)
    rows = rows_of(100)
    home, stream = Home(tmp_path), replace(settings_of("grid", RULES), shards=shards)
    written = write_log(home.log("grid"), rows, tuple(range(3, len(rows), 10)))
    log, keys = Log(home.log("grid")), tuple(range(shards))
    stores, changes, sizes = [Store() for _ in keys], [], []
    for number, segment in enumerate(log.segments(0)):
        packed = packets(log, segment, stream, shards=shards)
        results = []
        for key in keys:
            if number % 7 == key:
                kept_state._decoded.clear()  # another worker takes over: all it has is the state store
                kept_state._stored.clear()
            settings = step_settings(stream, shard=key, shards=shards)
            done = stepped(stores[key], "checkpoint", packed[key], settings, key)
            results.append(done.changes)
        changes.append(settled(results))
        sizes.append(max(store.size() for store in stores))
    states = [state for _, state in kept_state._decoded.values()]
    assert max(len(state.objects) for state in states) < 50
    assert max(len(state.queries) for state in states) < 50
    assert max(sizes[len(sizes) // 2 :]) <= 1.5 * max(sizes[: len(sizes) // 2])
    expected = oracle.judge(rows, layers={}, rules=RULES)
    assert told(pa.concat_tables(changes), written.order) == told_by_oracle(
        expected.changes
    )


def stepped(store, stage, packet, settings, key=0):
    """Steps a shard by a packet, with the state that a store has, and stores it."""
    kept = KeptState(store, stage)
    done = step(kept.load(key), [packet], settings, lambda *_: None)
    kept.store(done, settings)
    return done


def batches(tmp_path, cuts, count):
    """Steps the one shard of a stream by batches, and gives the store before each and after the last."""
    home, stream = Home(tmp_path), settings_of("grid", RULES)
    write_log(home.log("grid"), rows_of(count), cuts)
    store = Store()
    yield store
    for segment in Log(home.log("grid")).segments(0):
        packet = packets(Log(home.log("grid")), segment, stream, shards=1)[0]
        stepped(store, f"checkpoint of {tmp_path}", packet, step_settings(stream))
        yield store


@pytest.mark.spec("X1")
def test_a_batch_asks_the_state_store_as_little_as_it_can(tmp_path):
    asked = []
    for store in batches(tmp_path, (3, 4, 5), 2):
        asked.append(store.asked[:])
        store.asked.clear()
    usual = asked[1:]
    assert usual == [["open", "get", "update", "update"]] * len(usual)
    assert len(usual) > 2


@pytest.mark.spec("S4")
@pytest.mark.parametrize("seed", range(2))
def test_a_store_holds_what_its_head_names_and_at_most_two_journals(
    tmp_path, monkeypatch, seed
):
    monkeypatch.setattr(kept_state, "LEAST", 10)
    monkeypatch.setattr(kept_state, "_LEAST_JOURNAL", 1 << 16)
    monkeypatch.setattr(kept_state, "_CHUNK", 1 << 10)
    cuts = sorted(Random(seed).sample(range(1, 200), 60))
    bases, slots, limit = set(), set(), 1 << 16
    for store in batches(tmp_path, cuts, 70):
        if not store.variables:
            continue
        head = store.head
        limit = max(limit, head["base_bytes"])
        assert store.entries.keys() == {
            "head",
            *(f"base/{number}" for number in range(head["chunks"])),
            *(f"queries/{number}" for number in range(head["query_chunks"])),
            *(f"journal/{number}" for number in range(head["slots"])),
        }
        assert store.size("base/") == head["base_bytes"]
        assert store.size("journal/") <= 2 * limit
        bases.add((head["base"], head["chunks"]))
        slots.add(head["slots"])
    assert len(bases) > 3  # the journal began anew again and again
    assert len({chunks for _, chunks in bases}) > 2
    assert len(slots) > 3


@pytest.mark.spec("S2")
def test_state_of_another_version_is_refused_and_not_taken_for_none():
    store = Store()
    kept = KeptState(store, "checkpoint")
    store.variables["state"][("head",)] = (b'{"format": 3, "what": "ever"}',)
    for _ in range(2):  # at every try
        with pytest.raises(StateError, match=r"format 3, .* new checkpointLocation"):
            kept.load(0)
