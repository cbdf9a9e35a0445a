"""Spark's checkpoint at a start: a file that is not what its checksum says makes the stream begin at its log."""

import zlib
from pathlib import Path

import pytest

from st_common.errors import StateError
from st_common.position import position_of
from st_common.spark.checkpoint import discard_unusable

pytestmark = pytest.mark.spec("S2")
CHUNK = 512
DONE = position_of(3, 0) - 1
STATE = bytes(range(256)) * 5


def _store(path: Path, data: bytes) -> None:
    """A file and its sums beside it, as Hadoop's file system writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = [
        zlib.crc32(data[at : at + CHUNK]).to_bytes(4, "big")
        for at in range(0, len(data), CHUNK)
    ]
    path.with_name(f".{path.name}.crc").write_bytes(
        b"crc\0" + CHUNK.to_bytes(4, "big") + b"".join(sums)
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    _store(folder / "offsets" / "0", b'v1\n{"batchWatermarkMs":0}\n{"segment": 3}')
    _store(folder / "commits" / "0", b'v1\n{"nextBatchWatermarkMs":0}')
    _store(folder / "state" / "0" / "0" / "1.changelog", STATE)
    _store(folder / "state" / "0" / "0" / ".2.changelog.af.tmp", b"half")
    return folder


def test_a_whole_checkpoint_stays(checkpoint: Path) -> None:
    (
        checkpoint / "state" / "0" / "0" / ".2.changelog.af.tmp"
    ).unlink()  # what a dead driver was writing
    (checkpoint / "state" / "0" / "0" / "lock").write_bytes(b"without sums")
    assert discard_unusable(checkpoint, start=0, committed=DONE) is None
    assert checkpoint.exists()


@pytest.mark.parametrize(
    "damaged",
    [
        STATE[:700],
        b"",
        STATE[:1024],
        STATE + b"\0",
        STATE[:900] + bytes([STATE[900] ^ 16]) + STATE[901:],
        None,
    ],
    ids=["cut", "empty", "cut at a chunk's end", "longer", "one bit", "gone"],
)
def test_a_damaged_file_of_the_state_makes_it_begin_at_the_log(
    checkpoint: Path, damaged: bytes | None
) -> None:
    file = checkpoint / "state" / "0" / "0" / "1.changelog"
    file.unlink() if damaged is None else file.write_bytes(damaged)
    notice = discard_unusable(checkpoint, start=0, committed=DONE)
    assert notice is not None
    assert f"{file} is damaged" in notice
    assert "\n" not in notice
    assert not checkpoint.exists()


def test_torn_sums_count_as_damage(checkpoint: Path) -> None:
    (checkpoint / "state" / "0" / "0" / ".1.changelog.crc").write_bytes(b"")
    assert "1.changelog is damaged" in (
        discard_unusable(checkpoint, start=0, committed=DONE) or ""
    )


def test_a_damaged_state_whose_generation_began_behind_the_table_is_refused(
    checkpoint: Path,
) -> None:
    (checkpoint / "state" / "0" / "0" / "1.changelog").write_bytes(STATE[:1])
    with pytest.raises(StateError, match=r"1\.changelog is damaged") as refused:
        discard_unusable(checkpoint, start=9, committed=DONE)
    assert "streams reset" in str(refused.value.hint)
    assert checkpoint.exists()
