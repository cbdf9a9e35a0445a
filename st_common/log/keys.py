"""Where the objects of a log lie: see `log`."""

import re

from st_common.errors import LogError
from st_common.log.segment import Segment

SEGMENTS = "segments"
RAW = "raw"
PER_FOLDER = 10_000
_NAME = re.compile(r"(\d{12})(?:\.seg|-[0-9a-f]{8}\.raw)")


def folder_of(number: int) -> str:
    """The folder of a segment, ten thousand in each: `segments/00000001` for number 12345."""
    return f"{SEGMENTS}/{number // PER_FOLDER:08d}"


def key_of(number: int) -> str:
    """The key of a segment: `segments/00000001/000000012345.seg` for number 12345."""
    return f"{folder_of(number)}/{number:012d}.seg"


def number_of(name: str, where: str) -> int:
    """The number of the segment whose file has a name: 12345 for `000000012345.seg`, and for its raw bytes.

    Args:
        name: the last part of a key.
        where: the log, for people; errors name it.

    Raises:
        LogError: no segment has such a name.
    """
    stem = _NAME.fullmatch(name)
    if stem is None:
        raise LogError(
            f"{name} in {where} is no segment",
            hint="only capture writes here; move the file away",
        )
    return int(stem[1])


def raw_key(segment: Segment) -> str:
    """The key of the raw bytes of a packet: `raw/00000001/000000012345-89abcdef.raw`, with their checksum.

    The checksum keeps those of a writer apart that lost the number to another one.
    """
    number = segment.number
    return (
        f"{RAW}/{number // PER_FOLDER:08d}/{number:012d}-{segment.raw_checksum:08x}.raw"
    )
