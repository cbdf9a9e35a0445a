"""Tasks that decode a share of a backlog each: everybody gets what one who decodes all would have."""

import contextlib
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import Clock
from st_common.controls.writing import to_bytes
from st_common.engine.cross_shard import NOBODY, everybody
from st_common.errors import LogError
from st_common.log.appending import append_records
from st_common.log.record_settings import log_for
from st_common.log.segment import Segment
from st_common.spark.exchange import decoding as shared_decoding
from st_common.spark.exchange.decoding import PACKETS, Decoding, shared_packets
from st_common.spark.exchange.peers import Peers
from st_common.spark.exchange.wire import Keys
from st_common.spark.task_settings import TaskSettings

pytestmark = pytest.mark.spec("S5", "S7")

SHARDS = 4


def stream_of(**how):
    columns = Columns(object="id", event_ts="t", x="x", y="y")
    return StreamSettings(
        name="ships",
        format="csv",
        columns=columns,
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        attributes={"load": "long"},
        shards=SHARDS,
        **how,
    )


def y_of(row):
    """A place, now and then none: such a row is a reject."""
    return "" if row % 17 == 0 else row


def load_of(row):
    """A number, now and then a word, which is null and counted."""
    return "many" if row % 13 == 0 else row


def written(folder, stream):
    """A log with segments of many sizes, a clock among them, rejects, and attributes that cannot be read."""
    log = log_for(Home(folder), stream)
    rng = np.random.default_rng(7)
    for number, rows in enumerate((1, 700, 3, 2500, 0, 40, 900)):
        ships, places = rng.integers(0, 50, rows), rng.integers(0, 99, rows)
        lines = [
            f"s{ship},{number * 10},{place},{y_of(row)},{load_of(row)}"
            for row, (ship, place) in enumerate(zip(ships, places, strict=True))
        ]
        payload = "\n".join(["id,t,x,y,load", *lines, ""]).encode()
        append_records(log, stream, payload, arrival_us=number, live=False)
        if number == 3:
            log.append(to_bytes(Clock(ts_us=31_000_000)), arrival_us=3, clock=True)
    return log


class Crew:
    """Tasks that know each other, all in this process."""

    def __init__(self, feed, count):
        self.decodings = [Decoding(feed) for _ in range(count)]
        keys = Keys.made()
        self.peers = [
            Peers("127.0.0.1", keys, {PACKETS: one}) for one in self.decodings
        ]
        addresses = sorted(one.address for one in self.peers)
        for one in self.peers:
            one.meet(addresses)

    def read(self, segments, *, following):
        """What each task gets for its shards, all at once as they run."""
        read: dict[int, list] = {}

        def run(number):
            shards = list(range(SHARDS))[number :: len(self.peers)]
            read.update(
                shared_packets(
                    self.decodings[number],
                    self.peers[number],
                    segments,
                    shards,
                    following=following,
                )
            )

        threads = [
            threading.Thread(target=run, args=(n,))
            for n in range(min(len(self.peers), SHARDS))  # nobody steps no shards
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return read

    def close(self):
        for one in self.peers:
            one.close()


@contextlib.contextmanager
def crew_of(feed, count):
    crew = Crew(feed, count)
    try:
        yield crew
    finally:
        crew.close()


@pytest.fixture
def ships(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_decoding, "SHARED_FROM_BYTES", 0)
    stream = stream_of()
    log = written(tmp_path, stream)
    feed = TaskSettings(home=str(tmp_path), stream=stream)
    return log, feed


def fixes_of(packets):
    """The fixes of packets, those of a shard in their order, and all that they count, however they are cut."""
    fixes = [
        (place, packet.objects[code].as_py(), ts, x, y, gone, load)
        for packet in packets
        if not packet.controls
        for place, code, ts, x, y, gone, load in zip(
            packet.positions().tolist(),
            packet.code.tolist(),
            packet.ts.tolist(),
            packet.x.tolist(),
            packet.y.tolist(),
            packet.gone.tolist(),
            packet.attributes["load"].to_pylist(),
            strict=True,
        )
    ]
    counted = [
        sum(getattr(one, name) for one in packets)
        for name in ("rows", "rejects", "segments")
    ]
    nulled = sum(one.nulled.get("load", 0) for one in packets)
    controls = [(one.segment, list(one.controls)) for one in packets if one.controls]
    return fixes, counted, nulled, controls


@pytest.mark.parametrize(
    "following", [NOBODY, frozenset([1]), everybody(SHARDS) - {0}, everybody(SHARDS)]
)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_shard_gets_what_one_who_decodes_all_gives_it(ships, count, following):
    log, feed = ships
    segments = log.segments(0)
    whole = Decoding(feed).decode(segments, following=following)
    with crew_of(feed, count) as crew:
        read = crew.read(segments, following=following)
    assert sorted(read) == list(range(SHARDS))
    for shard, packets in read.items():
        expected = fixes_of([part[shard] for part in whole])
        assert fixes_of(packets) == expected
        assert len(expected[0]) > 100


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 5))
def test_each_segment_is_in_one_share(sizes, members):
    """Also those that hold nothing, as what was skipped does."""
    segments = [
        Segment(number=n, arrival_us=0, control=False, size=size, checksum=0)
        for n, size in enumerate(sizes)
    ]
    shares = shared_decoding._shares(segments, members)
    assert len(shares) == members
    assert [one for share in shares for one in share] == segments


def test_each_segment_is_decoded_by_one_task_alone(ships, monkeypatch):
    log, feed = ships
    segments, decoded = log.segments(0), []
    decode = Decoding.decode

    def noting(self, some, *, following):
        decoded.extend(one.number for one in some)
        return decode(self, some, following=following)

    monkeypatch.setattr(Decoding, "decode", noting)
    with crew_of(feed, 3) as crew:
        crew.read(segments, following=NOBODY)
    assert sorted(decoded) == [one.number for one in segments]


def test_who_has_gone_is_decoded_for(ships):
    log, feed = ships
    segments = log.segments(0)
    with crew_of(feed, 3) as crew:
        expected = crew.read(segments, following=NOBODY)
        for gone in crew.peers[1:]:
            gone.close()
        read = shared_packets(
            Decoding(feed), crew.peers[0], segments, range(SHARDS), following=NOBODY
        )
    assert {shard: fixes_of(packets) for shard, packets in read.items()} == {
        shard: fixes_of(packets) for shard, packets in expected.items()
    }


def test_what_another_task_cannot_read_is_an_error_of_the_one_who_asks(ships):
    log, feed = ships
    segments = log.segments(0)
    for one in segments[-3:]:
        path = next(log.folder.rglob(f"{one.number:012d}.seg"))
        path.write_bytes(path.read_bytes()[:-1] + b"~")
    with crew_of(feed, 2) as crew:
        first = min(crew.peers, key=lambda one: one.number)
        decoding = crew.decodings[crew.peers.index(first)]
        with pytest.raises(LogError, match="damaged"):
            shared_packets(decoding, first, segments, range(SHARDS), following=NOBODY)


def test_little_is_decoded_by_each_for_itself(ships, monkeypatch):
    log, feed = ships
    monkeypatch.setattr(shared_decoding, "SHARED_FROM_BYTES", 1 << 30)
    with crew_of(feed, 2) as crew:
        for other in crew.decodings[1:]:
            monkeypatch.setattr(other, "answer", None)  # whoever is asked breaks
        read = shared_packets(
            crew.decodings[0], crew.peers[0], log.segments(0), [0], following=NOBODY
        )
    assert len(fixes_of(read[0])[0]) > 100
