"""How streams and deliveries are: as the last tick judged them, corrected by whether a process lives now."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import broken_of
from st_common.errors import TransientError
from st_common.operations.decide import BAD_CONFIG, CRASH_LOOP, Memory
from st_common.operations.health import Health
from st_common.operations.launcher import find
from st_common.operations.records import read_record
from st_common.operations.status import ended_well, read_exit, read_status

MEMORY_FILE = "supervisor.json"
"""What a tick leaves for the next one, in the folder of the stream or delivery."""

UNSEEN = "unseen"
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

    Beside the healths there are `stopped` (no process, and none is wanted), `unseen` (its log cannot be read, its
    cluster does not answer, or no tick looked yet), `crash_loop`, and `bad_config`, with which it is not started again.

    Args:
        home: the home folder.
        streams: the settings by name.
        now_us: now, us since 1970.
    """
    judged = {
        name: health_now(home.stream(name), wanted=stream.running, now_us=now_us)
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
        name: health_now(home.delivery(name), wanted=wanted, now_us=now_us)
        for name, wanted in deliveries.items()
    }
    return {"streams": healths(home, streams, now_us=now_us), "deliveries": judged}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """Why a stream or delivery does not run although it should.

    Attributes:
        health: `bad_config`, `crash_loop`, or `unseen` where its log cannot be read or its cluster does not answer.
        why: the error that its process ended with, "": it left none; of `unseen` what went wrong.
    """

    health: str
    why: str


def given_up(folder: Path, *, now_us: int) -> GivenUp | None:
    """Why nothing runs in the folder of a stream or delivery; None when something does, or nothing was given up."""
    memory = Memory.from_json(memory_record(folder))
    health = memory.tripped or (UNSEEN if memory.condition == UNSEEN else "")
    if not health:
        return None
    try:
        running = find(folder, now_us=now_us)
    except TransientError as error:
        return GivenUp(health=UNSEEN, why=str(error))
    return GivenUp(health=health, why=memory.why) if running is None else None


def memory_record(folder: Path) -> dict[str, Any]:
    """What the last tick left in a folder as `Memory` has it; empty when no tick looked."""
    record = read_record(folder / MEMORY_FILE) or {}
    return {key: value for key, value in record.items() if key != "health"}


def health_now(folder: Path, *, wanted: bool, now_us: int) -> str:
    """How a stream or delivery is, of `ALL_HEALTHS`.

    Args:
        folder: of the stream or delivery.
        wanted: whether it shall run.
        now_us: now, us since 1970.
    """
    record = read_record(folder / MEMORY_FILE) or {}
    judged = str(record.get("health", UNSEEN))
    dead = judged in (Health.DEAD, Health.FINISHED, UNSEEN, CRASH_LOOP, BAD_CONFIG)
    try:
        running = find(folder, now_us=now_us)
    except TransientError:
        return UNSEEN
    if running is not None:
        return str(Health.STARTING) if dead else judged
    # What ended in order, was given up, or waits for its cluster, is not dead for want of a process.
    if record.get("tripped") or judged == Health.FINISHED:
        return str(record.get("tripped") or judged)
    if wanted and record.get("condition") == UNSEEN:
        return UNSEEN
    is_orderly = not wanted or ended_well(read_status(folder), read_exit(folder))
    return STOPPED if is_orderly else str(Health.DEAD)
