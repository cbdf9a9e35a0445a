"""Recorded logs of streams that go over to Spark on the way tell what they told when they were recorded."""

import json
from pathlib import Path

import pytest

from tests.kit.replays import needs_spark, read_recording, replay

pytestmark = pytest.mark.timeout(600)
FOLDER = Path(__file__).parents[1] / "replays"
TOLD = json.loads((FOLDER / "told.json").read_text(encoding="utf-8"))
RECORDINGS = {name: read_recording(FOLDER / f"{name}.jsonl") for name in TOLD}
NAMES = [name for name in TOLD if needs_spark(RECORDINGS[name])]


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_goes_over_to_spark_tells_what_it_told(spark, name, tmp_path):
    assert replay(RECORDINGS[name], tmp_path / "home", spark) == TOLD[name]
