"""How streams and deliveries are: as the last tick judged them, corrected by whether a process lives now."""

from collections.abc import Mapping
from pathlib import Path

from st_common.errors import TransientError
from st_common.home import Home
from st_common.ops.health import Health
from st_common.ops.launcher import find
from st_common.ops.records import read_record
from st_common.settings import StreamSettings, broken_of

MEMORY_FILE = "supervisor.json"
"""What a tick leaves for the next one, in the folder of the stream or delivery."""

UNSEEN = "unseen"
BAD_CONFIG = "bad_config"
CRASH_LOOP = "crash_loop"
STOPPED = "stopped"
ALL_HEALTHS = (
    *(str(health) for health in Health),
    STOPPED,
    UNSEEN,
    CRASH_LOOP,
    BAD_CONFIG,
)
"""Every word that `all_healths` has for a stream or a delivery."""


def healths(
    home: Home, streams: Mapping[str, StreamSettings], *, now_us: int
) -> dict[str, str]:
    """How each stream is, by name: as the last tick judged it, corrected by whether a process lives now.

    Beside the healths there are `stopped` (no process, and none is wanted), `unseen` (its log cannot be read, or no
    tick looked yet) and the reasons for which a stream was given up: `crash_loop`, `bad_config`.

    Args:
        home: the home folder.
        streams: the settings by name.
        now_us: now, us since 1970.
    """
    judged = {
        name: _health_now(home.stream(name), wanted=stream.running, now_us=now_us)
        for name, stream in streams.items()
    }
    return judged | dict.fromkeys(broken_of(streams), BAD_CONFIG)


def all_healths(
    home: Home,
    streams: Mapping[str, StreamSettings],
    deliveries: Mapping[str, bool],
    *,
    now_us: int,
) -> dict[str, dict[str, str]]:
    """How each of the `streams` is, and of the `deliveries`, which say by name whether they shall run."""
    judged = {
        name: _health_now(home.delivery(name), wanted=wanted, now_us=now_us)
        for name, wanted in deliveries.items()
    }
    return {"streams": healths(home, streams, now_us=now_us), "deliveries": judged}


def _health_now(folder: Path, *, wanted: bool, now_us: int) -> str:
    record = read_record(folder / MEMORY_FILE) or {}
    judged = str(record.get("tripped") or record.get("health", UNSEEN))
    dead = judged in (Health.DEAD, Health.FINISHED, UNSEEN)
    try:
        running = find(folder, now_us=now_us)
    except TransientError:
        return UNSEEN
    if running is not None:
        return str(Health.STARTING) if dead else judged
    # What ended in order, or was given up, is not dead for want of a process.
    if judged in (Health.FINISHED, record.get("tripped")):
        return judged
    return str(Health.DEAD) if wanted else STOPPED
