"""Sources of a stream in a process of their own: until it is told to end, or for some seconds."""

import asyncio
import contextlib
import signal

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.sources.capture import capture_all
from st_common.sources.note import CaptureNote

_ENDS = (signal.SIGINT, signal.SIGTERM)


async def run_until_stopped(
    home: Home,
    stream: StreamSettings,
    names: tuple[str, ...],
    *,
    seconds: float | None = None,
) -> list[CaptureNote]:
    """Captures until SIGINT or SIGTERM; what has arrived by then is stored.

    Args:
        home: the home folder.
        stream: the stream.
        names: of its sources.
        seconds: it ends after so long; None: it does not.

    Returns:
        What each source has brought.

    Raises:
        FairwayError: a source cannot go on.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for one in _ENDS:
        loop.add_signal_handler(one, stop.set)
    timer = None if seconds is None else loop.call_later(seconds, stop.set)
    try:
        return await capture_all(home, stream, names, stop)
    finally:
        if timer is not None:
            timer.cancel()
        for one in _ENDS:
            with contextlib.suppress(ValueError):
                loop.remove_signal_handler(one)
