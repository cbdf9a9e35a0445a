"""Law: an archive that takes what the engine has decoded stores what one stores that decodes the log by itself."""

import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.engine import archive as archiving
from st_common.engine import handover as handing
from st_common.engine.archive import Archive
from st_common.engine.handover import Handover
from st_common.engine.local import LocalEngine
from st_common.home import Home
from st_common.settings import Columns, StreamSettings
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log, settings_of, write_log
from tests.kit.strategies import cases, segmentations

TABLES = (("positions", "grid"), ("rejects",))
STREAM = StreamSettings(
    name="grid",
    format="csv",
    columns=Columns(object="object", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
)
ORDER = [("segment", "ascending"), ("row", "ascending")]


def stored(home):
    """What both tables hold, in the log's order; of an object that is gone x is NaN."""
    rows = [
        tables.read(home.table(*name)).sort_by(ORDER).to_pylist()
        for name in TABLES
        if tables.exists(home.table(*name))
    ]
    return repr(rows)


def archived_alone(home, stream):
    archive = Archive(home, stream)
    while archive.batch():
        pass
    return stored(home)


class Beside:
    """An engine and its archive in one process, of which each may start anew."""

    def __init__(self, home, stream):
        self.home, self.stream = home, stream
        self.start()

    def start(self):
        """As a run begins."""
        self.handover = Handover()
        self.engine = LocalEngine(self.home, self.stream, handover=self.handover)
        self.archive = Archive(self.home, self.stream, self.handover)

    def restart(self):
        """As after a kill."""
        self.engine.abandon()
        self.start()

    def read(self):
        self.engine.batch()

    def archive_some(self):
        self.archive.batch()

    def end(self):
        """As a run ends."""
        while self.engine.batch():
            pass
        self.engine.close()
        self.handover.close()
        while self.archive.batch():
            pass


ACTS = st.lists(
    st.sampled_from([Beside.read, Beside.archive_some, Beside.restart]), max_size=12
)


@pytest.mark.spec("X1")
@tries(15)
@given(cases(layers=False), st.data(), st.integers(0, 4), st.integers(1, 12), ACTS)
def test_what_the_engine_has_decoded_is_archived_as_what_is_decoded_anew(
    case, data, least, most, acts
):
    cut, stream = (
        data.draw(segmentations(len(case.rows))),
        settings_of("grid", case.rules),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(handing, "LEAST_ROWS", least),
        mock.patch.object(handing, "MOST_ROWS", most),
    ):
        alone, both = Home(Path(folder) / "alone"), Home(Path(folder) / "both")
        for home in (alone, both):
            write_log(home.log("grid"), case.rows, cut.cuts)
        beside = Beside(both, stream)
        for act in acts:
            act(beside)
        beside.end()
        assert stored(both) == archived_alone(alone, stream)


def csv_rows(first, count):
    lines = [f"o{n % 7},{n},{n % 10},{n % 5}" for n in range(first, first + count)]
    return ("object,t,x,y\n" + "\n".join(lines) + "\n").encode()


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """An engine and an archive on a log of three large segments and a small one, each decoded by itself."""
    monkeypatch.setattr(handing, "LEAST_ROWS", 100)
    monkeypatch.setattr("st_common.decode.joined._MOST_BYTES", 1)
    log = bare_log(Home(tmp_path).log("grid"))
    for first, count in ((0, 200), (200, 200), (400, 200), (600, 10)):
        log.append(csv_rows(first, count), arrival_us=0)
    made = Beside(Home(tmp_path), STREAM)
    yield made
    made.engine.abandon()


def test_what_is_held_is_not_decoded_again(beside, monkeypatch):
    beside.read()
    with monkeypatch.context() as patch:
        patch.setattr(archiving, "pieces", None)  # whoever decodes fails
        beside.archive_some()
    assert beside.archive.next_segment == 3
    beside.archive_some()
    assert beside.archive.next_segment == 4
    assert tables.read(beside.home.table("positions", "grid")).num_rows == 610


def test_an_archive_does_not_run_ahead_of_its_engine(beside):
    assert not beside.archive.batch()
    beside.end()
    assert beside.archive.next_segment == 4


def test_what_makes_room_for_newer_pieces_is_decoded_by_the_archive(
    beside, monkeypatch
):
    monkeypatch.setattr(handing, "MOST_ROWS", 250)
    beside.read()
    assert [handing.first_of(piece) for piece in beside.handover.since(2)] == [2]
    assert beside.handover.since(1) == []
    assert beside.handover.limit(0) == 2
    beside.archive_some()
    assert beside.archive.next_segment == 2
    beside.archive_some()
    assert beside.archive.next_segment == 3
    assert beside.handover.since(2) == []  # nothing is held any longer
