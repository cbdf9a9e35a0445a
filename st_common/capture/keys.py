"""Where the objects of a log lie: see `log`."""

from st_common.capture.segment import Segment
from st_common.errors import LogError

SEGMENTS = "segments"
RAW = "raw"
_PER_FOLDER = 10_000


def folder_of(number: int) -> str:
    """The folder of a segment."""
    return f"{SEGMENTS}/{number // _PER_FOLDER:08d}"


def key_of(number: int) -> str:
    """Where a segment lies."""
    return f"{folder_of(number)}/{number:012d}.seg"


def number_of(name: str, where: str) -> int:
    """The number of the segment that has this name.

    Raises:
        LogError: it is none; `where` is the log, for people.
    """
    stem = name.removesuffix(".seg")
    if not (stem.isdigit() and len(stem) == 12):
        raise LogError(
            f"{name} in {where} is no segment",
            hint="only capture writes here; move the file away",
        )
    return int(stem)


def raw_key(segment: Segment) -> str:
    """Where the raw bytes of a packet lie; the checksum keeps those of a writer apart that lost the number."""
    number = segment.number
    return f"{RAW}/{number // _PER_FOLDER:08d}/{number:012d}-{segment.raw_checksum:08x}.raw"
