"""Objects on the map as bytes: a header of JSON, then arrays, little endian.

    u32 length of the header | header, in UTF-8, padded by blanks | index u32 | lon f64 | lat f64 | event_s f64 |
    heading f32 | speed f32

What follows the header and each array begins at a multiple of 8 bytes.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from st_common.answers.moving_places import Moved
from st_common.server.page.frame import Frame

MEDIA = "application/octet-stream"
_ALIGNED = 8
_LENGTH = struct.Struct("<I")


def packed(header: Mapping[str, Any], moved: Moved, frame: Frame) -> bytes:
    """The bytes.

    Args:
        header: what stands in front; the number of objects is added as `count`.
        moved: the objects.
        frame: where the map shows them.
    """
    arrays = (
        moved.index.astype("<u4"),
        frame.lon(moved.x).astype("<f8"),
        frame.lat(moved.y).astype("<f8"),
        (moved.event_us / 1e6).astype("<f8"),
        moved.heading.astype("<f4"),
        moved.speed.astype("<f4"),
    )
    text = json.dumps({**header, "count": len(moved.index)}, ensure_ascii=False)
    head = text.encode()
    head += b" " * (-(_LENGTH.size + len(head)) % _ALIGNED)
    return b"".join((_LENGTH.pack(len(head)), head, *(_padded(one) for one in arrays)))


def _padded(values: np.ndarray) -> bytes:
    data: bytes = values.tobytes()
    return data + b"\0" * (-len(data) % _ALIGNED)
