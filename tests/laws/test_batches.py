"""The laws of batches: however segments are read together, the changes and the tables are those of each by itself."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.decode import batch as joined
from st_common.engine import archive, pace
from st_common.engine.packets import packets, packets_of, step_settings
from st_common.log.log import Log
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.plan import Plan
from tests.kit.effort import tries
from tests.kit.laws import in_row_order, run_steps
from tests.kit.log_writer import ended, settings_of, write_log
from tests.kit.oracle import Control, Fix, Rules
from tests.kit.shapely_layer import ShapelyLayer
from tests.kit.strategies import cases, segmentations


def by_ticks(case):
    return any(
        "plan" in r.row and Plan.from_json(r.row["plan"]).by_ticks
        for r in case.rows
        if isinstance(r, Control)
    )


@pytest.mark.spec("S4", "X1")
@tries(40)
@given(cases(), st.integers(1, 3), st.booleans(), st.booleans(), st.data())
def test_segments_read_together_tell_what_each_tells_by_itself(
    case, shards, moving, through_bytes, data
):
    assume(moving or not by_ticks(case))
    cut = data.draw(segmentations(len(case.rows)))
    stream = replace(settings_of("grid", case.rules), moving=moving)
    with tempfile.TemporaryDirectory() as folder:
        written = write_log(Path(folder), case.rows, cut.cuts)
        found = Log(Path(folder)).segments(0)
        made = list(packets_of(written.log, found, stream, shards=shards))
    states, told = [State()] * shards, []
    every = data.draw(st.integers(1, max(1, len(made))))
    for at in range(0, len(made), every):
        done = []
        for shard in range(shards):
            read = [one[shard] for one in made[at : at + every]]
            read = (
                [Packet.from_blob(one.to_blob()) for one in read]
                if through_bytes
                else read
            )
            of = step_settings(stream, shard=shard, shards=shards)
            done.append(
                step(states[shard], read, of, lambda *of: ShapelyLayer(case.layers[of]))
            )
        states = [one.state for one in done]
        told.append(settled([one.changes for one in done]))
    changes, _, order = run_steps(case, cut)
    assert in_row_order(pa.concat_tables(told), written.order) == in_row_order(
        changes, order
    )
    assert sum(one[0].segments for one in made) == len(found)


@pytest.mark.spec("S4", "P2")
@tries(10)
@given(cases(layers=False), st.data())
def test_the_archive_of_segments_read_together_is_that_of_each_by_itself(case, data):
    case = ended(case)
    cut = data.draw(segmentations(len(case.rows)))
    found = []
    for most in (1, 4096):
        with (
            tempfile.TemporaryDirectory() as folder,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(joined, "_MOST_PAYLOADS", most)
            home, stream = Home(Path(folder)), settings_of("grid", case.rules)
            write_log(home.log("grid"), case.rows, cut.cuts, arrival_us=7)
            job = archive.Archive(home, stream)
            while job.batch():
                pass
            rows = tables.read(home.table("positions", "grid")).sort_by(
                [("segment", "ascending"), ("row", "ascending")]
            )
            lost = tables.read(home.table("rejects")).sort_by(
                [("segment", "ascending"), ("row", "ascending")]
            )
            found.append((repr(rows.to_pylist()), lost.to_pylist(), job.totals))
    assert found[0] == found[1]


def many(home, count):
    fixes = [
        Fix(position=0, object=f"o{n % 7}", event_us=n * 1_000_000, x=1.0, y=1.0)
        for n in range(count)
    ]
    write_log(home.log("grid"), fixes, range(count))


def test_a_batch_has_no_more_segments_than_its_pace(tmp_path):
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    many(home, 700)
    job = archive.Archive(home, stream)
    assert job.batch()
    assert job.next_segment == 512
    assert job.batch()
    assert job.next_segment == 700


def test_a_batch_ends_where_it_has_taken_long_enough_or_has_enough_rows(
    tmp_path, monkeypatch
):
    home, stream = Home(tmp_path), settings_of("grid", Rules())
    many(home, 20)
    read = list(
        pace.taken(
            packets_of(
                Log(home.log("grid")),
                Log(home.log("grid")).segments(0),
                stream,
                shards=1,
            ),
            len,
        )
    )
    assert [one[0].segments for one in read] == [20]
    monkeypatch.setattr(joined, "_MOST_PAYLOADS", 6)
    for name, value in (("BATCH_ROWS", 8), ("BATCH_S", 0.0)):
        monkeypatch.setattr(pace, name, value)
        made = packets_of(
            Log(home.log("grid")), Log(home.log("grid")).segments(0), stream, shards=1
        )
        read = list(pace.taken(made, lambda one: one[0].rows))
        assert (
            sum(one[0].segments for one in read)
            == {"BATCH_ROWS": 12, "BATCH_S": 6}[name]
        )
    assert (
        packets(
            Log(home.log("grid")),
            Log(home.log("grid")).segments(7)[0],
            stream,
            shards=1,
        )[0].segment
        == 7
    )


def test_the_pace_follows_what_batches_cost():
    start = pace.Pace()
    assert start.after(512, 0.1).segments == 2048
    assert start.after(100, 0.1).segments == 512  # the log had no more
    assert start.after(512, 20.0).segments == 51
    assert start.after(1, 20.0).segments == 1
    assert pace.Pace(segments=1 << 12).after(1 << 12, 0.1).segments == 1 << 12
