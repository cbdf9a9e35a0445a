"""Recorded logs tell what they told when they were recorded; `make deep ARGS=replay-golden` says more."""

import json
from pathlib import Path

import pytest

from tests.kit.replays import needs_spark, read_recording, replay

FOLDER = Path(__file__).parents[1] / "replays"
TOLD = json.loads((FOLDER / "told.json").read_text(encoding="utf-8"))
RECORDINGS = {name: read_recording(FOLDER / f"{name}.jsonl") for name in TOLD}


def test_every_recording_has_its_record():
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(TOLD)
    assert len(TOLD) >= 40


@pytest.mark.parametrize(
    "name", [name for name in TOLD if not needs_spark(RECORDINGS[name])]
)
def test_a_recorded_log_tells_what_it_told(name, tmp_path):
    assert replay(RECORDINGS[name], tmp_path / "home") == TOLD[name]
