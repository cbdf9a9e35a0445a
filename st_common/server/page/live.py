"""Where objects are now, for the map: all at first, then those that moved behind a cursor.

What is told is bytes: a header of JSON, then arrays, little endian.

    u32 length of the header | header, in UTF-8, padded by blanks | index u32 | lon f64 | lat f64 | event_s f64 |
    heading f32 | speed f32

What follows the header and each array begins at a multiple of 8 bytes.
"""

import json
import struct
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from starlette.responses import Response

from st_common.answers.live_places import Look
from st_common.answers.moving_places import Moved
from st_common.config.parameters import Parameter
from st_common.server.endpoint import Endpoint
from st_common.server.page.frame import Frame, frame_of
from st_common.server.page.readers import live_places
from st_common.server.parameters import ANY_TEXT, Parameters, known_stream
from st_common.server.replies import iso_of
from st_common.written import whole_number

MEDIA = "application/octet-stream"
_ALIGNED = 8
_LENGTH = struct.Struct("<I")
_PARTS = 4
_MOST = (1 << 63) - 1
_Seen = tuple[str, str, int, int]


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


@Endpoint(
    "GET",
    "/page/live/{stream}",
    params=(Parameter("since", ANY_TEXT, "the cursor of the last answer"),),
    gives=MEDIA,
    lane="live",
)
def live(asked: Parameters) -> Response:
    """Where the objects of a stream are now, as arrays for a map: all, or those that moved behind a cursor."""
    stream = known_stream(asked, asked.path["stream"])
    epoch, tag, serial, names = _seen(asked.params.get("since", ""))
    places = live_places(asked, stream)
    look = places.look(epoch, serial, names)
    frame = frame_of(asked, stream)  # of a plane that nobody saw before: around these
    if tag != frame.tag and not look.is_whole:
        look = places.look()
    known = look.names_from + len(look.names)
    header = {
        "cursor": f"{look.epoch}.{frame.tag}.{look.serial}.{known}",
        "reset": look.is_whole,
        "names": {"from": look.names_from, "names": look.names.tolist()},
        "latest_event_ts": iso(look.newest_us),
        "lag_s": _lag_s(look),
    }
    return Response(packed(header, look.moved, frame), media_type=MEDIA)


def _seen(cursor: str) -> _Seen:
    """What a cursor says: epoch, frame, serial number and how many names; one that nobody gave begins anew."""
    parts = cursor.split(".")
    counts = [whole_number(part, _MOST) for part in parts[2:]]
    if len(parts) != _PARTS or counts[0] is None or counts[1] is None:
        return "", "", -1, 0
    return parts[0], parts[1], counts[0], counts[1]


def _lag_s(look: Look) -> float:
    """How long the first segment has waited that is not read yet; 0 when all are."""
    if look.unread_since_us is None:
        return 0.0
    return max(time.time_ns() // 1000 - look.unread_since_us, 0) / 1e6


def iso(time_us: int | None) -> str | None:
    """A time in ISO 8601, UTC; None stays."""
    if time_us is None:
        return None
    return iso_of(datetime.fromtimestamp(time_us / 1e6, UTC))
