"""Whether what a log has stored of a segment is what it was."""

from collections.abc import Callable

from st_common.errors import LogError
from st_common.log.log import Log
from st_common.log.segment import Segment


def is_whole(log: Log, segment: Segment) -> bool:
    """Whether the payload of a segment is there and undamaged."""
    return _works(log.read, segment)


def is_raw_whole(log: Log, segment: Segment) -> bool:
    """Whether the bytes of a segment as they arrived are there and undamaged."""
    return _works(log.raw, segment)


def _works(read: Callable[[Segment], bytes], segment: Segment) -> bool:
    try:
        read(segment)
    except LogError:
        return False
    return True
