"""State of earlier versions in Spark's state store: it is refused, and never taken for a shard that begins."""

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import IntegerType, LongType, StructType

from st_common.errors import StateError

_HEAD = (
    StructType()
    .add("version", LongType())
    .add("base", LongType())
    .add("chunks", IntegerType())
    .add("query_chunks", IntegerType())
    .add("base_bytes", LongType())
    .add("bytes", LongType())
)
"""Of the variable `head` of format 1, which had a state variable for each kind of entry."""
_looked: set[tuple[str, str, int]] = set()
"""Of this worker: the stages, runs and partitions that it has looked at."""


class EarlierState:
    """The head that format 1 stored in a variable of its own.

    Spark itself would go on without the variables that it is not asked for, and give an empty state. Opening one
    takes as long as the rest of what a batch asks, so a worker does it once for each partition of a run.

    Args:
        handle: of the stage; at the first look one state variable is opened in it.
        stage: tells the stages of a worker apart.
    """

    def __init__(self, handle: StatefulProcessorHandle, stage: str) -> None:
        task = TaskContext.get()
        self._at = None
        if task is not None:  # there is none where Spark asks the driver for schemas
            run = task.getLocalProperty("spark.jobGroup.id") or ""
            self._at = (stage, run, task.partitionId())
        is_known = self._at in _looked
        self._head = None if is_known else handle.getValueState("head", _HEAD)

    def check(self, *, begins: bool) -> None:
        """Looks for state of format 1 of the shard whose rows Spark gives.

        Args:
            begins: whether there is none of the present format.

        Raises:
            StateError: there is one.
        """
        if self._head is None:
            return
        if begins and self._head.get() is not None:
            refuse(1)
        if self._at is not None:
            _looked.add(self._at)


def refuse(stored: object) -> None:
    """Says that state is of another format, and what to do.

    Raises:
        StateError: always.
    """
    raise StateError(
        f"the checkpoint holds state of format {stored}, which another version of Fairway wrote",
        hint="run it with that version, or begin anew: `fairway streams reset STREAM`,"
        " with `continuous` a new checkpointLocation",
    )
