"""Waiting for engines, wherever they run."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from st_common.errors import TransientError

_LOOK_S = 0.2
_GIVEN_UP = ("failed", "bad_config", "crash_loop")


def await_done(
    state_of: Callable[[], Mapping[str, Any]], timeout_s: float | None
) -> None:
    """Returns once a stream has evaluated all that its log holds.

    Args:
        state_of: tells how it is, as `Client.status` does.
        timeout_s: how long to wait; None: as long as it takes.

    Raises:
        TransientError: its engine was given up, or the time is over.
    """
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    while (state := state_of())["segments_done"] < state["segments"]:
        done = f"{state['segments_done']} of {state['segments']} segments of {state['stream']!r} are evaluated"
        if state["state"] in _GIVEN_UP:
            raise TransientError(f"{done}, and its engine ended: {state['why']}")
        if end_s is not None and time.monotonic() >= end_s:
            raise TransientError(f"{done} after {timeout_s:g} s")
        time.sleep(_LOOK_S)
