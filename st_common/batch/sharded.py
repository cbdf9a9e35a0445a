"""An interval folded by shards: blocks of it are packed side by side, then each shard folds its own, side by side, too.

    blocks of a day     00:00 - 08:00   08:00 - 16:00   16:00 - 24:00     a task each: fixes -> packets
    shards              0, 1                                              a task each: packets -> state, changes

A shard needs nothing of another one (docs/adr/0008), so there is nothing to exchange within a day; days follow each
other, by the state where they meet. Here tasks are processes of this machine, which pass packets on in files;
`spark.batch_days` has the same two steps as a job of Spark.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from st_common.batch.folding import Folded, Interval, fold_packets
from st_common.batch.ordered import Dealing, Ordered, Slice
from st_common.batch.processed import FOLDER
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.cross_shard import NOBODY, Shards, asked_by, asking_in
from st_common.engine.local import layers_of
from st_common.engine.packets import step_settings
from st_common.engine.states import load, save
from st_common.log.log import Log
from st_common.operations.process import owner_of, this_host, this_process
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state.codec import PACKED
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA

_BLOBS = pa.schema([("blob", pa.binary())])
_WORK = ".work"  # begins the names of folders with packets, which live as long as an interval is folded
Work = Callable[..., Any]


class RunTasks(Protocol):
    """Runs a function for each of some tasks, wherever it likes; what it is given and gives can be pickled."""

    def __call__(self, tasks: Sequence[tuple[Any, ...]], work: Work) -> list[Any]:
        """What the function gives for each task, in their order.

        Raises:
            FairwayError: that of a task.
        """


@dataclass(frozen=True)
class ShardedFold:
    """Folds an interval by tasks; see `batch.folding.Fold`.

    Args:
        run: runs them.
        shards: how many there are; any number gives the same changes.
    """

    run: RunTasks
    shards: int

    def __call__(self, interval: Interval, state: State) -> Folded:
        """The state behind the interval, with the changes on the way."""
        ordered = interval.ordered
        following = following_in(interval, state, self.shards)
        with _work_folder(ordered.home, ordered.stream.name) as folder:
            task = _Task(
                home=Home(ordered.home.root.resolve()),
                stream=ordered.stream,
                dealing=Dealing(self.shards, following),
                trial=ordered.trial,
                folder=folder,
            )
            blocks = interval.blocks(at_least=self.shards)
            self.run([(task, *block) for block in enumerate(blocks)], _pack_block)
            states = split(state, shards=self.shards, following=following)
            for shard, one in enumerate(states):
                save(task.state_file(shard), one)
            failures = self.run(
                [(task, len(blocks), shard) for shard in range(self.shards)],
                _fold_shard,
            )
            behind = [
                load(task.state_file(shard, behind=True))
                for shard in range(self.shards)
            ]
            return Folded(
                state=joined(behind, following=following),
                changes=tuple(
                    changes_of_bytes(task.changes_file(shard).read_bytes())
                    for shard in range(self.shards)
                ),
                failures=tuple(dict.fromkeys(one for part in failures for one in part)),
            )


def following_in(interval: Interval, state: State, shards: int) -> Shards:
    """The shards that follow all objects: those that judge a query of the interval which asks where others are.

    Args:
        interval: what is folded.
        state: the one before it.
        shards: how many there are.
    """
    ordered = interval.ordered
    if not ordered.stream.moving:
        return NOBODY
    asked = [asked_by(ordered.rows_of(one), shards).all for one in interval.placed]
    return asking_in(state.queries, shards).all.union(*asked)


def fold_shard(
    packets: Iterable[bytes],
    state: State,
    shard: int,
    shards: int,
    *,
    home: Home,
    stream: StreamSettings,
) -> Folded:
    """The state of a shard behind packets, with the changes on the way.

    Args:
        packets: of the shard, in their order, as bytes; the first gets the number that the state says.
        state: of the shard, before them.
        shard: its number.
        shards: how many there are.
        home: where layers lie.
        stream: the settings, with the stream's key of ids.
    """
    numbered = (
        [replace(Packet.from_blob(blob), segment=number)]
        for number, blob in enumerate(packets, state.next_segment)
    )
    settings = step_settings(stream, shard=shard, shards=shards)
    return fold_packets(numbered, state, settings, layers_of(home, stream))


def changes_to_bytes(changes: pa.Table) -> bytes:
    """Changes of a shard, rows of `SHARD_SCHEMA`, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SHARD_SCHEMA, options=PACKED) as writer:
        writer.write_table(changes.unify_dictionaries().combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def changes_of_bytes(data: bytes) -> pa.Table:
    """The changes that `changes_to_bytes` was given."""
    return pa.ipc.open_stream(data).read_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What every task of a day must know.

    Attributes:
        home: the home folder.
        stream: the settings, with the stream's key of ids.
        dealing: how many shards there are, and which of them follow all objects.
        trial: what counts in the place of the log's statements.
        folder: takes packets, states and changes.
    """

    home: Home
    stream: StreamSettings
    dealing: Dealing
    trial: Trial | None
    folder: Path

    def packets_file(self, block: int, shard: int) -> Path:
        """Where the packets of a block are for a shard."""
        return self.folder / f"{block}.{self.reads_of(shard)}.packets"

    def reads_of(self, shard: int) -> int:
        """The shard whose packets a shard reads: those that follow all objects get the same, in one file."""
        following = self.dealing.following
        return min(following) if shard in following else shard

    def state_file(self, shard: int, *, behind: bool = False) -> Path:
        """Where the state of a shard is, before the interval or behind it: a task may be tried again."""
        return self.folder / f"{shard}.{'behind' if behind else 'before'}"

    def changes_file(self, shard: int) -> Path:
        """Where a shard's changes are."""
        return self.folder / f"{shard}.changes"


def _pack_block(task: _Task, number: int, block: Sequence[Slice]) -> None:
    """Puts the packets of a block of slices into files."""
    log = Log(task.home.log(task.stream.name))
    ordered = Ordered(task.home, task.stream, log, task.trial)
    with ExitStack() as files:
        writers = {
            shard: files.enter_context(_written(task.packets_file(number, shard)))
            for shard in range(task.dealing.shards)
            if task.reads_of(shard) == shard
        }
        for packets in ordered.packets_of(block, 0, task.dealing):
            for by_shard in packets:
                for shard, writer in writers.items():
                    writer.write_batch(_as_batch(by_shard[shard]))


@contextmanager
def _written(path: Path) -> Iterator[pa.ipc.RecordBatchStreamWriter]:
    """A file that takes packets."""
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_stream(sink, _BLOBS) as writer,
    ):
        yield writer


def _as_batch(packet: Packet) -> pa.RecordBatch:
    return pa.record_batch([pa.array([packet.to_blob()], pa.binary())], schema=_BLOBS)


def _fold_shard(task: _Task, blocks: int, shard: int) -> list[Failure]:
    """Folds all packets of a shard, and puts its state and its changes into files; gives queries that failed."""
    packets = (
        blob
        for number in range(blocks)
        for blob in _packets_in(task.packets_file(number, shard))
    )
    folded = fold_shard(
        packets,
        load(task.state_file(shard)),
        shard,
        task.dealing.shards,
        home=task.home,
        stream=task.stream,
    )
    save(task.state_file(shard, behind=True), folded.state)
    changes = pa.concat_tables([SHARD_SCHEMA.empty_table(), *folded.changes])
    task.changes_file(shard).write_bytes(changes_to_bytes(changes))
    return list(folded.failures)


def _packets_in(path: Path) -> Iterator[bytes]:
    """The packets of a file."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        for batch in reader:
            yield batch.column(0)[0].as_py()


@contextmanager
def _work_folder(home: Home, stream: str) -> Iterator[Path]:
    """A folder of this process for one interval; those of processes of this machine that died meanwhile go."""
    above = home.stream(stream).resolve() / FOLDER
    above.mkdir(parents=True, exist_ok=True)
    mine = f"{_WORK}-{this_host()}-"
    for left in above.glob(f"{mine}*"):
        if owner_of(int(left.name.removeprefix(mine).partition("-")[0])) is None:
            shutil.rmtree(left, ignore_errors=True)
    prefix = f"{mine}{this_process().pid}-"
    with tempfile.TemporaryDirectory(dir=above, prefix=prefix) as folder:
        yield Path(folder)
