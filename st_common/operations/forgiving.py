"""Streams and deliveries that were given up may start again: one that somebody names, or all of a home."""

from dataclasses import replace
from pathlib import Path

from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.operations.decide import Memory
from st_common.operations.judged import MEMORY_FILE, memory_record
from st_common.operations.records import held_lock, write_record


def retry(home: Home, name: str) -> None:
    """Lets a stream, or a delivery by the name `deliveries/NAME`, start again at the next tick, given up or not.

    Raises:
        ConfigError: no supervisor has ever looked at such a stream.
    """
    if not forgive(home, name):
        raise ConfigError(
            f"no stream {name!r} was given up",
            hint="`fairway status` says how streams are; a delivery is deliveries/NAME",
        )


def forgive(home: Home, name: str) -> bool:
    """As `retry`; gives False where nobody has looked after it yet, so that there is nothing to forget."""
    kind, _, delivery = name.rpartition("/")
    is_delivery = kind == "deliveries"
    folder = home.delivery(delivery) if is_delivery else home.stream(name)
    with held_lock(home.root / ".supervisor.lock"):
        is_known = (folder / MEMORY_FILE).exists()
        if is_known:
            _forgive(folder)
    return is_known


def forgive_all(home: Home) -> None:
    """Lets every stream and delivery that was given up start again at the next tick, with fresh alerts."""
    with held_lock(home.root / ".supervisor.lock"):
        for kind in ("streams", "deliveries"):
            for path in sorted((home.root / kind).glob(f"*/{MEMORY_FILE}")):
                if Memory.from_json(memory_record(path.parent)).tripped:
                    _forgive(path.parent)


def _forgive(folder: Path) -> None:
    memory = Memory.from_json(memory_record(folder))
    fresh = replace(memory, tripped="", why="", starts_us=(), condition="stopped")
    write_record(folder / MEMORY_FILE, fresh.to_json())
