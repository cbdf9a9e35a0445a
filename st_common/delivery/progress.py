"""How far a delivery is: the last change that its receiver acknowledged, or refused for good."""

from dataclasses import asdict, dataclass
from pathlib import Path

from st_common.answers.follow import Place
from st_common.errors import ConfigError
from st_common.operations.records import read_record, write_record

PROGRESS_FILE = "progress.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Every change of the stream up to (`position`, `seq`) is settled. Counts are totals since the delivery began."""

    stream: str
    position: int
    seq: int
    delivered: int = 0
    dead_letters: int = 0

    @property
    def place(self) -> Place:
        """The place behind which the delivery goes on."""
        return self.position, self.seq


def read_progress(folder: Path, stream: str) -> Progress | None:
    """The progress of the delivery in a folder; None when it has not begun.

    Raises:
        ConfigError: it belongs to another stream, whose positions mean nothing in this one, or cannot be read.
    """
    path = folder / PROGRESS_FILE
    if not path.exists():
        return None
    try:
        progress = Progress(**(read_record(path) or {}))
    except TypeError:
        raise ConfigError(
            f"{path} cannot be read",
            hint="without it the delivery begins again at the start",
        ) from None
    if progress.stream != stream:
        raise ConfigError(
            f"delivery {folder.name!r} has delivered stream {progress.stream!r}, and now shall deliver {stream!r}",
            hint="give the new delivery another name",
        )
    return progress


def write_progress(folder: Path, progress: Progress) -> None:
    """Stores the progress; a crash leaves the old one or the new one."""
    write_record(folder / PROGRESS_FILE, asdict(progress))
