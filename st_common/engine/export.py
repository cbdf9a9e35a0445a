"""States of shards as files: what an engine gives out for a reshard, and what the next one begins with."""

from collections.abc import Iterable
from pathlib import Path

from st_common.controls.reading import chosen
from st_common.controls.rows import Export
from st_common.engine import states
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.events.packet import Packet
from st_common.operators.state.state import State


def export_folder(home: Home, stream: str) -> Path:
    """Where engines put the states that a control row `export` asks for."""
    return home.stream(stream) / "export"


def export_path(home: Home, stream: str, segment: int, shard: int) -> Path:
    """Where the state of a shard right after the `export` of a segment goes."""
    return export_folder(home, stream) / str(segment) / f"{shard}.bin"


def seed_folder(generation: Path) -> Path:
    """Where the states are with which the shards of a generation begin."""
    return generation / "seed"


def seed_path(folder: Path, shard: int) -> Path:
    """The state with which a shard begins."""
    return folder / f"{shard}.bin"


def asked_exports(packets: Iterable[Packet]) -> list[int]:
    """The control segments among some packets that ask for an export."""
    return [p.segment for p in packets if any(chosen(p.controls, Export))]


def exported(home: Home, stream: str, segment: int, shards: int) -> list[State]:
    """The states that the shards gave out at a segment.

    Raises:
        StateError: an engine did not come that far, or a state is of another format.
    """
    paths = [export_path(home, stream, segment, shard) for shard in range(shards)]
    if not all(path.exists() for path in paths):
        raise StateError(
            f"stream {stream!r} ended before segment {segment} of its log",
            hint="its engine was asked to stop on the way; try again",
        )
    return [states.load(path) for path in paths]
