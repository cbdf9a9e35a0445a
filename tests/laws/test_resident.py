"""Tasks that stay tell what one engine tells, however they break off, and however the log is cut (S2, S5, S7)."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.engine import archive
from st_common.engine.filter_decisions import FilterDecisions, newest_states
from st_common.errors import StateError
from st_common.log.log import Log
from st_common.partitioning.store import store
from st_common.position import position_of
from st_common.spark import resident_engine, resident_task
from st_common.spark.exchange import decoded
from st_common.spark.exchange import decoding as shared_decoding
from tests.kit import oracle, replays
from tests.kit.archived import archived_alone, late_as_judged, late_as_stored, stored
from tests.kit.effort import tries
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import REGIONS, store_layers
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle import Fix, Rules
from tests.kit.resident import follow_resident
from tests.kit.strategies import cases, filtered_cases, segmentations

pytestmark = [pytest.mark.spec("S5"), pytest.mark.timeout(300)]
FOLDER = Path(__file__).parents[1] / "replays"
TOLD = json.loads((FOLDER / "told.json").read_text(encoding="utf-8"))


def follow_recording(monkeypatch, **how):
    """Has recordings followed by tasks that stay, wherever they were followed by one engine."""

    def follow(home, stream, batches=None):
        follow_resident(home, stream, **how, batches=batches)

    runs = {
        "idle": follow,
        "crash": lambda home, stream: follow(home, stream, batches=2),
    }
    monkeypatch.setattr(replays, "_RUNS", runs)
    monkeypatch.setattr(
        replays, "_go_on", lambda home, stream, *_: follow(home, stream)
    )


@pytest.mark.parametrize(
    ("name", "shards", "tasks", "seed"),
    [
        ("counting-layers", 1, 1, 1),
        ("pairs-plain", 2, 2, None),
        ("fixes-restarts", 3, 2, 2),
        ("neighbours-layers", 4, 2, 3),
        ("until-restarts", 3, 3, 4),
        ("ways-on-globe-0", 2, 3, 5),
    ],
)
def test_recorded_logs_tell_what_they_told(
    monkeypatch, tmp_path, name, shards, tasks, seed
):
    """More shards than tasks, and more tasks than shards; with a seed tasks break off, and are given other shards.

    Each task decodes a share of every plan, as of a backlog.
    """
    monkeypatch.setattr(shared_decoding, "SHARED_FROM_BYTES", 0)
    follow_recording(monkeypatch, shards=shards, tasks=tasks, seed=seed)
    steps = replays.read_recording(FOLDER / f"{name}.jsonl")
    assert replays.replay(steps, tmp_path / "home") == TOLD[name]


@pytest.mark.spec("S7", "X1")
@pytest.mark.parametrize(
    ("name", "seed", "rows"),
    [
        ("until-restarts", 1, 0),
        ("fixes-restarts", 2, 3),
        ("counting-layers", None, 0),
    ],
)
def test_recorded_logs_told_by_files_of_shards_tell_what_they_told(
    monkeypatch, tmp_path, name, seed, rows
):
    """As from a backlog: shards write what they tell, and the driver what is told where others tell, too.

    With some rows at least for files, what is less goes by the journal in between.
    """
    monkeypatch.setattr(resident_engine, "FILES_FROM_BYTES", 0)
    monkeypatch.setattr(resident_engine, "FILES_FROM_ROWS", rows)
    follow_recording(monkeypatch, shards=3, tasks=2, seed=seed)
    steps = replays.read_recording(FOLDER / f"{name}.jsonl")
    assert replays.replay(steps, tmp_path / "home") == TOLD[name]


@st.composite
def lives(draw):
    """A case with layers, how its log is cut, and how many tasks there are, which break off by a seed."""
    kind = draw(st.sampled_from(("fixes", "fences", "windows", "frames")))
    case = draw(cases(kind=kind, layers=True))
    assume(all(case.layers.values()))  # a layer without features cannot be loaded
    seed = draw(st.one_of(st.none(), st.integers(0, 99)))
    return case, draw(segmentations(len(case.rows))), draw(st.integers(1, 3)), seed


@pytest.mark.spec("B2", "S7")
@tries(36)
@given(lives())
def test_layers_spread_over_tasks_tell_what_brute_force_tells(life):
    """Each task has some regions of each layer, and asks the others."""
    case, cut, tasks, seed = life
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        store(home, REGIONS, np.zeros(3, np.int64), "by hand")
        case = store_layers(home, case)
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        spread = replace(stream, spark=SparkSettings(spread_layers_mb=0))
        follow_resident(home, spread, shards=2, tasks=tasks, seed=seed)
        changes = tables.read(home.table("changes", "grid"))
    expected = oracle.judge(case.rows, layers=case.layers, rules=case.rules)
    assert told(changes, written.order) == told_by_oracle(expected.changes)


@pytest.mark.spec("S2")
def test_a_defect_in_a_task_ends_the_run_with_what_it_says(monkeypatch, tmp_path):
    """And is not met again and again, as often as Spark would start the task."""

    def broken(*_):
        raise IndexError("index 3 is out of bounds")

    home, stream = Home(tmp_path), settings_of("grid", oracle.Rules())
    write_log(home.log("grid"), [Fix(position=0, object="a", event_us=1, x=1.0, y=1.0)])
    monkeypatch.setattr(resident_task, "step", broken)
    with pytest.raises(StateError, match=r"^IndexError: index 3 is out of bounds$"):
        follow_resident(home, stream, shards=1, tasks=1)


@pytest.mark.spec("X1", "X11")
@tries(6)
@given(
    filtered_cases(),
    st.data(),
    st.sampled_from([(1, 1), (3, 2), (2, 3)]),
    st.booleans(),
    st.integers(0, 1 << 32),
)
def test_what_tasks_decoded_and_filtered_is_archived_as_what_is_read_anew(
    case, data, sizes, is_shared, seed
):
    """However they break off; with restarts of the whole engine on the way."""
    cut, stream = (
        data.draw(segmentations(len(case.rows))),
        settings_of("grid", case.rules),
    )
    shards, tasks = sizes
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        if is_shared:
            patch.setattr(shared_decoding, "SHARED_FROM_BYTES", 0)
        alone, both = Home(Path(folder) / "alone"), Home(Path(folder) / "both")
        for home in (alone, both):
            write_log(home.log("grid"), case.rows, cut.cuts)
        for batches in (2, 3, None):
            follow_resident(
                both, stream, shards=shards, tasks=tasks, seed=seed, batches=batches
            )
        assert stored(both) == archived_alone(alone, stream)
        said = late_as_stored(both)  # fixes that are held with a filter wait
        assert said == late_as_judged(case.rows, case.rules)[: len(said)]
        start = data.draw(st.integers(0, len(cut.cuts) + 1))
        found = [filtered_from(home, stream, start) for home in (alone, both)]
        assert found[0] == found[1]


def filtered_from(home, stream, start):
    """What is filtered from a segment on, by who reads the log from there, whatever states there are."""
    log = Log(home.log("grid"))
    tail = FilterDecisions(home, stream, log, start)
    tail.decide(log.end())
    filtered = tail.marks._filtered
    return filtered.position.tolist(), filtered.reason.tolist(), filtered.value.tolist()


def test_who_reads_the_tail_of_a_stream_begins_with_what_its_shards_stored(tmp_path):
    fixes = [
        Fix(position=0, object=f"o{n % 7}", event_us=n * 1_000_000, x=1.0, y=1.0)
        for n in range(40)
    ]
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    write_log(home.log("grid"), fixes, range(0, 40, 4))
    follow_resident(home, stream, shards=3, tasks=2)
    end = Log(home.log("grid")).end()
    states = newest_states(home, "grid", upto=position_of(end, 0) - 1)
    assert [state.next_segment for state in states] == [end] * 3
    assert sum(len(state.objects) for state in states) == 7


def test_the_driver_of_tasks_decodes_nothing(monkeypatch, tmp_path):
    fixes = [
        Fix(position=0, object=f"o{n % 7}", event_us=n * 1_000_000, x=1.0, y=1.0)
        for n in range(40)
    ]
    home = Home(tmp_path)
    write_log(home.log("grid"), fixes, range(0, 40, 4))
    monkeypatch.setattr(archive, "pieces", None)
    monkeypatch.setattr(decoded, "pieces", None)
    for is_shared in (False, True):
        if is_shared:
            monkeypatch.setattr(shared_decoding, "SHARED_FROM_BYTES", 0)
            write_log(home.log("grid"), fixes, range(0, 40, 4))
        follow_resident(home, settings_of("grid", Rules()), shards=3, tasks=2)
    assert tables.read(home.table("positions", "grid")).num_rows == 80
