"""States of shards as files: what an engine gives out for a reshard, and what the next one begins with."""

from collections.abc import Iterable
from pathlib import Path

from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rows import Export
from st_common.engine import states
from st_common.errors import StateError
from st_common.operators.events.packet import Packet
from st_common.operators.state.state import State


def export_folder(home: Home, stream: str) -> Path:
    """The folder for the states that a control row `export` asks the shards for."""
    return home.stream(stream) / "export"


def export_path(home: Home, stream: str, segment: int, shard: int) -> Path:
    """Where a shard puts its state right after an `export`: `export/SEGMENT/SHARD.bin` in the stream's folder.

    Args:
        home: the home folder.
        stream: the stream.
        segment: the control segment with the row `export`.
        shard: the number of the shard, from 0 on.
    """
    return export_folder(home, stream) / str(segment) / f"{shard}.bin"


def seed_folder(generation: Path) -> Path:
    """The folder in that of a generation with the states from which its shards begin."""
    return generation / "seed"


def seed_path(folder: Path, shard: int) -> Path:
    """The file in a seed folder with the state from which a shard begins."""
    return folder / f"{shard}.bin"


def asked_exports(packets: Iterable[Packet]) -> list[int]:
    """The numbers of the control segments that ask for an export, in the order of the packets."""
    return [p.segment for p in packets if any(chosen(p.controls, Export))]


def exported(home: Home, stream: str, segment: int, shards: int) -> list[State]:
    """The states that the shards gave out at a segment, in the order of the shards.

    Args:
        home: the home folder.
        stream: the stream.
        segment: the control segment with the row `export`.
        shards: how many states there must be.

    Raises:
        StateError: an engine did not come that far, or a state is damaged or of another format.
    """
    paths = [export_path(home, stream, segment, shard) for shard in range(shards)]
    if not all(path.exists() for path in paths):
        raise StateError(
            f"stream {stream!r} ended before segment {segment} of its log",
            hint="its engine was asked to stop on the way; try again",
        )
    return [states.load(path) for path in paths]
