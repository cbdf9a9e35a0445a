"""Writes control segments into the logs of several streams, and files of the registry: all of them, or none.

One segment is atomic by itself, and so is one file. More of them are first written down in one file (the intent); a
writer that dies on the way leaves it, and whoever takes the registry's lock next writes what is missing. A reader may
see the first ones a moment before the last ones; never does a part remain.
"""

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from st_common.config.home import Home
from st_common.errors import LogError
from st_common.log.log import Log, Segment
from st_common.record import opened, sealed
from st_common.storage import LocalStorage, make_folder

_GENERATION = ".generation"


@contextmanager
def registry_locked(home: Home) -> Iterator[None]:
    """Holds the registry of a home against other processes, after completing what a dead writer had begun."""
    folder = _folder(home)
    make_folder(folder)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _complete(home)
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)


def unfinished(home: Home) -> bool:
    """Whether a dead writer left something to write."""
    return _intent(home).exists()


def completed(home: Home) -> None:
    """Sees to it that nothing is unfinished: what follows reads all of the last change, or nothing of it."""
    if unfinished(home):
        with registry_locked(home):
            pass  # taking the lock completes what a dead writer had begun


def registry_file(home: Home, name: str) -> Path:
    """Where a file of the registry lies; only `commit` writes it."""
    return _folder(home) / name


def generation(home: Home) -> bytes:
    """What is another one after each change of the registry.

    Whoever reads it while he holds the registry's lock may trust what he reads behind it for as long as it stays: a
    change begins another one before it writes anything, so without the lock it may be that of a change half done.
    """
    try:
        return registry_file(home, _GENERATION).read_bytes()
    except FileNotFoundError:
        return b""


def _begin_generation(home: Home) -> None:
    _write(registry_file(home, _GENERATION), token_hex(8).encode())


def commit(
    home: Home,
    logs: Mapping[str, Log],
    payloads: Mapping[str, Sequence[bytes]],
    *,
    arrival_us: int,
    files: Mapping[str, bytes] | None = None,
) -> dict[str, list[Segment]]:
    """Appends the control segments of each stream to its log and replaces `files` of the registry, all or none.

    Gives the segments of each stream. The registry must be locked; the logs may be.
    """
    parts = [
        (stream, payload) for stream in sorted(payloads) for payload in payloads[stream]
    ]
    replaced = dict(files or {})
    _begin_generation(home)
    if len(parts) + len(replaced) > 1:
        ends = {stream: logs[stream].end() for stream in payloads}
        rows = [
            {"stream": stream, "from": ends[stream], "payload": payload.decode()}
            for stream, payload in parts
        ]
        texts = {name: content.decode() for name, content in replaced.items()}
        _write(
            _intent(home),
            sealed({"arrival_us": arrival_us, "parts": rows, "files": texts}),
        )
    for name, content in replaced.items():
        _write(registry_file(home, name), content)
    written: dict[str, list[Segment]] = {stream: [] for stream in payloads}
    for stream, payload in parts:
        written[stream].append(
            logs[stream].append(payload, arrival_us=arrival_us, control=True)
        )
    _intent(home).unlink(missing_ok=True)
    return written


def _complete(home: Home) -> None:
    path = _intent(home)
    if not path.exists():
        return
    try:
        intent = opened(path.read_bytes())
    except ValueError:
        raise LogError(
            f"{path} cannot be read",
            hint="it says what a writer that died had begun to register: restore it from a copy",
        ) from None
    _begin_generation(home)
    for name, content in intent.get("files", {}).items():
        _write(registry_file(home, name), content.encode())
    for part in intent["parts"]:
        payload = part["payload"].encode()
        if not _stands(home, part, payload):
            Log(home.log(part["stream"])).append(
                payload, arrival_us=intent["arrival_us"], control=True
            )
    path.unlink()


def _stands(home: Home, part: Mapping[str, Any], payload: bytes) -> bool:
    """Whether a part is in its log: nobody else writes query rows before the intent is completed."""
    log = Log(home.log(part["stream"]))
    same_size = (
        segment
        for segment in log.control_segments(part["from"])
        if segment.size == len(payload)
    )
    return any(log.read(segment) == payload for segment in same_size)


def _folder(home: Home) -> Path:
    return home.root / "registry"


def _intent(home: Home) -> Path:
    return _folder(home) / "intent.json"


def _write(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also after a power cut."""
    LocalStorage(path.parent).put(path.name, content)
