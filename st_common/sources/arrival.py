"""What a source gives: some bytes of whole records, and what must be known of them until they are stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from st_common.decode import Decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where an arrival stands in the log.

    Attributes:
        position: of its first record.
        ahead: those of its records, from 0 on, whose event time is too far ahead of the stream to be believed.
    """

    position: int
    ahead: Sequence[int] = ()


def _nobody(_written: Written | None) -> None:
    """Nobody waits for it."""


def _nobody_fails(_error: Exception) -> None:
    """Nobody waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    r"""Some records, as a stream's format has them.

        b"id,t,x,y\n", b"1,2,3,4\n1,3,3,4\n"      two lines of one connection, and the header that it began with

    Attributes:
        header: goes in front of them in a payload; of lines of one header many arrivals make one payload.
        body: lines, each with its end; or a payload of its own.
        records: how many there are; 0 where lines say something about records that are still to come.
        is_lines: whether others may stand behind it in one payload.
        is_live: whether they are told as they happen, so that time goes on after them.
        owner: whose records these are, where they come in a file of their own; "" elsewhere.
        places: by part of the source (a partition, a file) where to go on behind these records; empty where a source
            cannot go back.
        decoded: of these records alone, where somebody has decoded them already.
        stored: called in the event loop once they are durable, with where they stand; with None where they were
            skipped.
        failed: called in the event loop where they could not be stored, with what was wrong, by whoever tells each by
            itself.
    """

    header: bytes = b""
    body: bytes
    records: int
    is_lines: bool = True
    is_live: bool = True
    owner: str = ""
    places: dict[str, int] = field(default_factory=dict)
    decoded: Decoded | None = None
    stored: Callable[[Written | None], None] = _nobody
    failed: Callable[[Exception], None] = _nobody_fails

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.body)
