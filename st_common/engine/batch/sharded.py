"""An interval folded by tasks: blocks of it are packed side by side, then each shard folds its own, side by side, too.

    blocks of a day     00:00 - 08:00   08:00 - 16:00   16:00 - 24:00     a task each: fixes -> packets, in files
    shards              0, 1                                              a task each: packets -> state, changes

A shard needs nothing of another one (docs/adr/0008), so there is nothing to exchange within a day; days follow each
other, by the state where they meet.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from st_common.capture.log import Log
from st_common.engine.batch.borders import FOLDER
from st_common.engine.batch.folding import Folded, Interval, fold_packets
from st_common.engine.batch.ordered import Dealing, Ordered, Slice
from st_common.engine.batch.trial import Trial
from st_common.engine.feed import step_settings
from st_common.engine.local import layers_of
from st_common.engine.others import NOBODY, Shards, asked_by, asking_in
from st_common.engine.states import load, save
from st_common.home import Home
from st_common.operators.events.packet import Packet
from st_common.operators.runtime.failed import Failure
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state.codec import PACKED
from st_common.operators.state.state import State
from st_common.operators.turn.changes import SHARD_SCHEMA
from st_common.ops.process import owner_of, this_host, this_process
from st_common.settings import StreamSettings

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
    """Folds an interval by tasks; see `engine.batch.folding.Fold`.

    Args:
        run: runs them.
        shards: how many there are; any number gives the same changes.
    """

    run: RunTasks
    shards: int

    def __call__(self, interval: Interval, state: State) -> Folded:
        """The state behind the interval, with the changes on the way."""
        ordered = interval.ordered
        following = self._following(interval, state)
        with _work_folder(ordered.home, ordered.stream.name) as folder:
            task = _Task(
                home=Home(ordered.home.root.resolve()),
                stream=ordered.stream,
                following=following,
                trial=ordered.trial,
                folder=folder,
                shards=self.shards,
                segment=state.next_segment,
            )
            counts = self._packed(task, interval)
            states = split(state, shards=self.shards, following=following)
            for shard, one in enumerate(states):
                save(task.state_file(shard), one)
            failures = self.run(
                [(task, counts, shard) for shard in range(self.shards)], _fold_shard
            )
            behind = [
                load(task.state_file(shard, behind=True))
                for shard in range(self.shards)
            ]
            return Folded(
                state=joined(behind, following=following),
                changes=tuple(_changes_in(task, n) for n in range(self.shards)),
                failures=tuple(dict.fromkeys(one for part in failures for one in part)),
            )

    def _packed(self, task: "_Task", interval: Interval) -> list[int]:
        """How many packets each block of slices has; they are in files then."""
        blocks = enumerate(interval.blocks(at_least=self.shards))
        counts: list[int] = self.run(
            [(task, number, block) for number, block in blocks], _pack_block
        )
        return counts

    def _following(self, interval: Interval, state: State) -> Shards:
        """The shards that follow all objects: those that judge a query of the interval which asks where others are."""
        ordered = interval.ordered
        if not ordered.stream.moving:
            return NOBODY
        asked = [
            asked_by(ordered.rows_of(one), self.shards).all for one in interval.placed
        ]
        return asking_in(state.queries, self.shards).all.union(*asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What every task of a day must know.

    Attributes:
        home: the home folder, which all workers reach.
        stream: the settings, with the stream's key of ids.
        following: the shards that follow all objects; the others have their own alone.
        trial: what counts in the place of the log's statements.
        folder: takes packets, states and changes.
        shards: how many there are.
        segment: the number of the first packet.
    """

    home: Home
    stream: StreamSettings
    following: Shards
    trial: Trial | None
    folder: Path
    shards: int
    segment: int

    def packets_file(self, block: int, shard: int) -> Path:
        """Where the packets of a block are for a shard."""
        return self.folder / f"{block}.{self.reads_of(shard)}.packets"

    def reads_of(self, shard: int) -> int:
        """The shard whose packets a shard reads: those that follow all objects get the same, in one file."""
        return min(self.following) if shard in self.following else shard

    def state_file(self, shard: int, *, behind: bool = False) -> Path:
        """Where the state of a shard is, before the interval or behind it: a task may be tried again."""
        return self.folder / f"{shard}.{'behind' if behind else 'before'}"

    def changes_file(self, shard: int) -> Path:
        """Where a shard's changes are."""
        return self.folder / f"{shard}.changes"


def _pack_block(task: _Task, number: int, block: Sequence[Slice]) -> int:
    """Puts the packets of a block of slices into files, numbered from 0; gives how many there are."""
    log = Log(task.home.log(task.stream.name))
    ordered = Ordered(task.home, task.stream, log, task.trial)
    count = 0
    with ExitStack() as files:
        writers = {
            shard: files.enter_context(_written(task.packets_file(number, shard)))
            for shard in range(task.shards)
            if task.reads_of(shard) == shard
        }
        dealing = Dealing(task.shards, task.following)
        for packets in ordered.packets_of(block, 0, dealing):
            count += len(packets)
            for by_shard in packets:
                for shard, writer in writers.items():
                    writer.write_batch(_as_batch(by_shard[shard]))
    return count


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


def _fold_shard(task: _Task, counts: Sequence[int], shard: int) -> list[Failure]:
    """Folds all packets of a shard, and puts its state and its changes into files; gives queries that failed."""
    settings = step_settings(task.stream, shard=shard, shards=task.shards)
    layer_of = layers_of(task.home, task.stream)
    starts = accumulate(counts, initial=task.segment)
    runs = (
        [packet]
        for number, start in zip(range(len(counts)), starts, strict=False)
        for packet in _packets_in(task.packets_file(number, shard), start)
    )
    folded = fold_packets(runs, load(task.state_file(shard)), settings, layer_of)
    save(task.state_file(shard, behind=True), folded.state)
    _put_changes(task.changes_file(shard), folded.changes)
    return list(folded.failures)


def _packets_in(path: Path, segment: int) -> Iterator[Packet]:
    """The packets of a file, numbered from a segment on."""
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_stream(source) as reader:
        for batch in reader:
            packet = Packet.from_blob(batch.column(0)[0].as_py())
            yield replace(packet, segment=packet.segment + segment)


def _put_changes(path: Path, changes: Sequence[pa.Table]) -> None:
    table = pa.concat_tables([SHARD_SCHEMA.empty_table(), *changes])
    sink = pa.OSFile(str(path), "wb")
    with sink, pa.ipc.new_stream(sink, SHARD_SCHEMA, options=PACKED) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())


def _changes_in(task: _Task, shard: int) -> pa.Table:
    with pa.OSFile(str(task.changes_file(shard)), "rb") as source:
        table: pa.Table = pa.ipc.open_stream(source).read_all()
    return table


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
