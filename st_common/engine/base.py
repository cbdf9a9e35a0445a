"""The local engine's state on disk: one file, replaced as a whole."""

import os
from pathlib import Path

from st_common.engine.topology import generation_folder
from st_common.home import Home
from st_common.operators.state import State

FILE = "state.bin"


def base_path(home: Home, stream: str) -> Path:
    """Where the local engine of a stream keeps its state in the generation that is in force."""
    return generation_folder(home, stream) / "local" / FILE


def save(path: Path, state: State) -> None:
    """Replaces the stored state; a crash leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dot_file = path.with_name(f".{path.name}.{os.getpid()}")
    with dot_file.open("wb") as out:
        out.write(state.to_blob())
        out.flush()
        os.fsync(out.fileno())
    dot_file.replace(path)


def load(path: Path) -> State:
    """The stored state, an empty one when there is none.

    Raises:
        StateError: the file is of another format.
    """
    return State.from_blob(path.read_bytes()) if path.exists() else State()
