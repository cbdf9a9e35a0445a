"""Tasks that stay tell what one engine tells, however they break off, and however the log is cut (S2, S5, S7)."""

import json
from pathlib import Path

import pytest

from st_common.testing import replays
from st_common.testing.resident import follow_resident

pytestmark = [pytest.mark.spec("S5"), pytest.mark.timeout(300)]
FOLDER = Path(__file__).parents[1] / "replays"
TOLD = json.loads((FOLDER / "told.json").read_text(encoding="utf-8"))


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
    """More shards than tasks, and more tasks than shards; with a seed tasks break off, and are given other shards."""
    how = {"shards": shards, "tasks": tasks, "seed": seed}
    runs = {
        "idle": lambda home, stream: follow_resident(home, stream, **how),
        "crash": lambda home, stream: follow_resident(home, stream, **how, batches=2),
    }
    monkeypatch.setattr(replays, "_RUNS", runs)
    monkeypatch.setattr(
        replays, "_go_on", lambda home, stream, *_: runs["idle"](home, stream)
    )
    steps = replays.read_recording(FOLDER / f"{name}.jsonl")
    assert replays.replay(steps, tmp_path / "home") == TOLD[name]
