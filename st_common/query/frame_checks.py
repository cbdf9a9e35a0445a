"""What a window in brackets cannot be (CQL-S); what it cannot stand beside is said by its node."""

import math
from collections.abc import Iterator

from st_common.query.complaint import Complaint
from st_common.query.frame import Extent, Frame
from st_common.regions.region import MovingRegion

_KM = "a length above 0, such as 50 km"
_LIKE = {
    "space": _KM,
    "time": "a time above 0, such as 10 min",
    "rows": "a whole number above 0, such as ROWS 10",
}
_NOUNS = {"space": "metres", "time": "seconds", "rows": "rows"}
_MOST = {
    "space": 1e12,
    "time": 1e10,
    "rows": 1e9,
}  # in micrometres and microseconds they are int64


def complaints_of_frame(frame: Frame) -> Iterator[Complaint]:
    """What is wrong with the values of a frame."""
    for sliding in frame.sliding:
        for name, extent in (("range", sliding.range), ("slide", sliding.slide)):
            if extent is not None and not _is_sane(extent):
                unit = _NOUNS[extent.by]
                message = f"a {name} of {extent.amount:g} {unit} is none"
                yield Complaint(at="frame", message=message, hint=_LIKE[extent.by])
    if any(isinstance(region, MovingRegion) for region in frame.regions):
        hint = "INSIDE takes regions that go with an object"
        yield Complaint(at="frame", message="a window's region stands still", hint=hint)
    if not (math.isfinite(frame.min_step_m) and frame.min_step_m >= 0):
        yield Complaint(
            at="options",
            message="min_step is 0 or more",
            hint="WITH (min_step = '10 m')",
        )
    if frame.session_s is not None:
        yield from _complaints_of_session(frame)
    if not (frame.sliding or frame.regions or frame.session_s is not None):
        yield Complaint(
            at="frame",
            message="expected a range or a region",
            hint="[RANGE BY 50 km RATTR SPACE]",
        )


def _complaints_of_session(frame: Frame) -> Iterator[Complaint]:
    pause = Extent(by="time", amount=frame.session_s or 0.0)
    if not _is_sane(pause):
        message = f"a pause of {pause.amount:g} seconds ends no session"
        yield Complaint(at="frame", message=message, hint=_LIKE["time"])
    if frame.sliding:
        message = "a session stands beside no window that slides"
        hint = "regions alone may stand beside it"
        yield Complaint(at="frame", message=message, hint=hint)
    if frame.full:
        hint = "it has no range that could be full"
        message = "windows = 'full' is not for sessions"
        yield Complaint(at="options", message=message, hint=hint)


def _is_sane(extent: Extent) -> bool:
    whole = extent.by != "rows" or float(extent.amount).is_integer()
    return whole and 0 < extent.amount <= _MOST[extent.by]
