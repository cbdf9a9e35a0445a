"""In which of its two modes a stream runs on Spark: in tasks that stay, or in micro-batches (docs/adr/0081).

A generation keeps the mode that it has begun in: the state of the other one is of no use to it.
"""

from pathlib import Path

from st_common.engine.topology import generation_folder
from st_common.errors import StateError
from st_common.home import Home
from st_common.settings import StreamSettings
from st_common.spark_keys import MICRO_BATCH, RESIDENT

_SAID = {RESIDENT: "in tasks that stay", MICRO_BATCH: "in micro-batches"}


def folder_of(home: Home, stream: str) -> Path:
    """The folder of the states that tasks have stored."""
    return generation_folder(home, stream) / "resident"


def checkpoint_of(home: Home, stream: str) -> Path:
    """The folder of Spark's checkpoint of micro-batches."""
    return generation_folder(home, stream) / "spark" / "checkpoint"


def begun_in(home: Home, stream: str) -> str | None:
    """The mode that the generation in force has begun in; None before its first start."""
    if folder_of(home, stream).exists():
        return RESIDENT
    return MICRO_BATCH if checkpoint_of(home, stream).exists() else None


def mode_of(home: Home, stream: StreamSettings) -> str:
    """The mode of a stream: what it has begun in, else what its settings say, else tasks that stay."""
    return begun_in(home, stream.name) or stream.spark.mode or RESIDENT


def check_mode(home: Home, stream: str, wanted: str | None) -> None:
    """Makes sure that a stream has not begun in another mode than is wanted.

    Raises:
        StateError: it has; the hint says how it goes over with all that it knows.
    """
    begun = begun_in(home, stream)
    if begun and wanted and begun != wanted:
        raise StateError(
            f"stream {stream!r} runs {_SAID[begun]}",
            hint=f"`fairway streams reshard {stream} --engine local`, and then without it, takes all over;"
            " or set mode back",
        )
