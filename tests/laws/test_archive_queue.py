"""Law: what an archive takes from the engine beside it is what one stores that reads the log by itself."""

import tempfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.engine import archive as archiving
from st_common.engine import archive_queue as sinking
from st_common.engine.archive import Archive
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.local import LocalEngine
from st_common.engine.pace import Pace
from st_common.engine.run import run
from tests.kit.archived import archived_alone, late_as_judged, late_as_stored, stored
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log, settings_of, write_log
from tests.kit.strategies import filtered_cases, segmentations

STREAM = StreamSettings(
    name="grid",
    format="csv",
    columns=Columns(object="object", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)


class Beside:
    """An engine and its archive in one process, of which each may start anew."""

    def __init__(self, home, stream):
        self.home, self.stream = home, stream
        self.start()

    def start(self):
        """As a run begins."""
        self.sink = ArchiveQueue()
        self.archive = Archive(self.home, self.stream, self.sink)
        self.engine = LocalEngine(self.home, self.stream, sink=self.sink)

    def restart(self):
        """As after a kill."""
        self.engine.abandon()
        self.start()

    def read(self):
        self.engine.batch()

    def archive_some(self):
        self.archive.batch()

    def compact(self):
        self.sink.compact()

    def commit(self):
        self.engine.commit()

    def store(self):
        self.engine.store()

    def end(self):
        """As a run ends."""
        while self.engine.batch():
            pass
        self.engine.close()
        while self.archive.batch():
            pass


ACTS = st.lists(
    st.sampled_from(
        [
            Beside.read,
            Beside.archive_some,
            Beside.compact,
            Beside.commit,
            Beside.store,
            Beside.restart,
        ]
    ),
    max_size=16,
)


@pytest.mark.spec("X1", "X11")
@tries(30)
@given(filtered_cases(), st.data(), st.sampled_from([1, 3, 1 << 20]), ACTS)
def test_what_the_engine_decoded_and_filtered_is_archived_as_what_is_read_anew(
    case, data, many, acts
):
    cut, stream = (
        data.draw(segmentations(len(case.rows))),
        settings_of("grid", case.rules),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sinking, "_MANY", many),
    ):
        alone, both = Home(Path(folder) / "alone"), Home(Path(folder) / "both")
        for home in (alone, both):
            write_log(home.log("grid"), case.rows, cut.cuts)
        beside = Beside(both, stream)
        for act in acts:
            act(beside)
        beside.end()
        assert stored(both) == archived_alone(alone, stream)
        said = late_as_stored(both)  # fixes that are held with a filter wait
        assert said == late_as_judged(case.rows, case.rules)[: len(said)]


def csv_rows(first, count):
    lines = [f"o{n % 7},{n},{n % 10},{n % 5}" for n in range(first, first + count)]
    return ("object,t,x,y\n" + "\n".join(lines) + "\n").encode()


def written(home):
    """A log of three large segments and a small one, each decoded by itself."""
    log = bare_log(home.log("grid"))
    for first, count in ((0, 200), (200, 200), (400, 200), (600, 10)):
        log.append(csv_rows(first, count), arrival_us=0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr("st_common.decode.batch._MOST_BYTES", 1)
    written(Home(tmp_path))
    return Home(tmp_path)


@pytest.fixture
def beside(home):
    """An engine and an archive on that log."""
    made = Beside(home, STREAM)
    yield made
    made.engine.abandon()


@pytest.fixture
def decodes_nothing(monkeypatch):
    """Whoever decodes for an archive fails."""
    monkeypatch.setattr(archiving, "pieces", None)


def rows_of(home):
    path = home.table("positions", "grid")
    return tables.read(path).num_rows if tables.exists(path) else 0


@pytest.mark.usefixtures("decodes_nothing")
def test_an_archive_decodes_nothing_and_does_not_run_ahead_of_its_engine(beside):
    assert not beside.archive.batch()
    beside.read()
    beside.archive_some()
    assert (beside.archive.next_segment, rows_of(beside.home)) == (4, 610)
    assert not beside.archive.batch()


@pytest.mark.usefixtures("decodes_nothing")
def test_after_a_kill_the_engine_begins_where_the_archive_lacks_nothing(beside):
    for _ in range(3):
        beside.engine._pace = Pace(segments=1)
        beside.engine.batch()
        beside.engine.store()
        if beside.archive.next_segment == 0:
            beside.archive.batch()
    beside.restart()
    assert (
        beside.engine.committed > beside.engine.end
    )  # archived up to 1, committed up to 3
    assert beside.sink.start == 1
    beside.end()
    assert rows_of(beside.home) == 610
    assert beside.engine.totals.segments == 1  # the others were counted before


def test_what_lies_before_every_state_is_read_by_the_archive_itself(beside):
    beside.engine._pace = Pace(segments=3)
    beside.engine.batch()
    beside.engine.store()
    beside.restart()
    assert (beside.sink.start, beside.archive.next_segment) == (3, 0)
    beside.end()
    assert rows_of(beside.home) == 610


def test_an_engine_waits_for_an_archive_that_does_not_keep_up(beside, monkeypatch):
    monkeypatch.setattr(sinking, "MOST_BYTES", 1)
    assert not beside.archive.is_behind
    beside.read()
    assert beside.archive.is_behind
    assert beside.sink.has_batch
    beside.archive_some()
    assert not beside.archive.is_behind


def test_nobody_waits_for_what_only_the_engine_can_decide(tmp_path, monkeypatch):
    monkeypatch.setattr(sinking, "MOST_BYTES", 1)
    by = PositionFilter(max_speed_mps=1000.0)
    stream = replace(STREAM, lateness_s=3600.0, position_filter=by)
    written(Home(tmp_path))
    beside = Beside(Home(tmp_path), stream)
    beside.read()
    assert not beside.archive.is_behind  # all are held
    assert not beside.archive.batch()
    beside.engine.abandon()


def test_a_run_with_room_for_one_piece_archives_all(home, monkeypatch):
    monkeypatch.setattr(sinking, "MOST_BYTES", 1)
    run(home, STREAM, until_idle=True)
    assert rows_of(home) == 610


def test_what_is_decided_of_a_piece_may_end_before_what_is_archived_of_it(beside):
    beside.read()
    piece = beside.sink.since(0)[0]
    whole = replace(piece, segments=[*piece.segments] * 3)
    assert sinking.cut([whole], 2, 1) == []
    assert sinking.cut([whole], 1, 1) == []
