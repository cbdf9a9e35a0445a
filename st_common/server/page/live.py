"""Where objects are now, for the map: all at first, then those that moved behind a cursor."""

import time
from datetime import UTC, datetime

from starlette.responses import Response

from st_common.answers.live_places import Look
from st_common.server.asked import Asked, known_stream
from st_common.server.page.frame import frame_of
from st_common.server.page.lives import live_places
from st_common.server.page.packed import MEDIA, packed
from st_common.server.replies import iso_of
from st_common.written import whole_number

_PARTS = 4
_MOST = (1 << 63) - 1
_Seen = tuple[str, str, int, int]


def live(asked: Asked) -> Response:
    """The objects of a stream that moved behind a cursor, or all of them."""
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
