"""What tasks must know of a stream."""

import dataclasses
from pathlib import Path

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.export import seed_folder
from st_common.engine.packets import step_settings
from st_common.engine.topology import generation_folder, topology_of
from st_common.errors import StateError
from st_common.log.log import Log
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """A stream, and from where on in its log its shards are stepped.

    Attributes:
        home: the path of the home folder.
        stream: the settings.
        start: the segment from which the log is read; above 0 after a reshard.
        seed: the folder with the states from which the shards begin after a reshard; None: they begin empty.
    """

    home: str
    stream: StreamSettings
    start: int = 0
    seed: str | None = None

    @staticmethod
    def of(home: Home, stream: StreamSettings) -> "TaskSettings":
        """The feed of the generation in force: after a reshard with its place and its states to begin with."""
        topology, place = topology_of(home, stream.name), str(home.root.resolve())
        if topology is None or not topology.generation:
            return TaskSettings(home=place, stream=stream)
        seed = seed_folder(generation_folder(home, stream.name).resolve())
        return TaskSettings(
            home=place, stream=stream, start=topology.start, seed=str(seed)
        )

    @property
    def shards(self) -> int:
        """How many there are."""
        return self.stream.shards

    def settings(self, shard: int) -> Settings:
        """What decides the answers of one shard.

        Args:
            shard: its number, from 0 on.
        """
        return step_settings(self.stream, shard=shard, shards=self.shards)

    def place_of(self, state: State) -> int:
        """The segment that must come next for a state."""
        return max(state.next_segment, self.start)

    def log(self) -> Log:
        """The stream's log."""
        return Log(Home(Path(self.home)).log(self.stream.name))


def tasks_folder(home: Home, stream: str) -> Path:
    """The folder of the states that the tasks of the generation in force have stored."""
    return generation_folder(home, stream) / "resident"


def refuse_micro_batches(home: Home, stream: str) -> None:
    """Makes sure that a stream was not begun in micro-batches of Structured Streaming, as versions before could.

    Raises:
        StateError: it was; its state lies in a checkpoint that nothing here reads, and the hint says what to do.
    """
    checkpoint = generation_folder(home, stream) / "spark" / "checkpoint"
    if checkpoint.exists():
        raise StateError(
            f"stream {stream!r} was begun in micro-batches: its state is {checkpoint}, of a mode that is gone",
            hint=f"`fairway streams reset {stream}`, and the next run makes state and tables again from the log",
        )
