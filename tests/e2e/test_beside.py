"""A stream that runs while its closed days are processed again, compacted and reported on, each by its own process."""

import pytest

from tests.kit.beside import run_beside


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.spec("C5", "C6", "X2")
def test_reprocessing_compaction_and_reports_beside_a_stream_change_no_answer(tmp_path):
    done = run_beside(tmp_path / "home", seconds=0, rounds=1, day_s=30.0)
    assert set(done.done) == {"reprocess", "maintain", "report_quality"}
    assert done.days >= 1
    assert min(done.changes, done.visits) > 100
