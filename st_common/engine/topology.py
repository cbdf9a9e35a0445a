"""What is fixed when a stream is first run: the engine, its shards, and every setting that decides answers.

Settings that say how records are read are not: they stand in the log, and hold from a place on (`log.record_settings`).

Engine and shards change by a reshard alone, which begins a new generation: a folder of its own for the engine's state,
and the segment from which the engine goes on. Replacing the record is what puts a generation in force.
"""

import dataclasses
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from st_common.config.home import TOPOLOGY_FILE, Home
from st_common.config.stream import StreamSettings
from st_common.errors import StateError
from st_common.log import record_settings as reading
from st_common.log.log import Log
from st_common.operations.alerts import tell
from st_common.operations.records import held_lock, read_record, write_record
from st_common.storage import make_folder

# What may change between two runs: it does not decide what a log's rows mean.
_FREE = (
    "running",
    "joins",
    "group",
    "max_speed_mps",
    "engine",
    "shards",
    "latest_every",
    "latest_flush_s",
    "snapshot_s",
    "codec",
    "raw_days",
    "log_days",
    "positions_days",
    "changes_days",
    "sources",
    "spark",
    "filters",
    *reading.NAMES,
)


_KEY_LENGTH = 16  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The engine of a stream and its shards.

    Attributes:
        engine: `local` or `spark`.
        shards: how many; the local engine has one.
        generation: how often the stream was resharded; the state of each generation has a folder of its own.
        start: the segment at which this generation began, 0 for the first.
    """

    engine: str
    shards: int
    generation: int = 0
    start: int = 0

    def __str__(self) -> str:
        return f"{self.engine} with {self.shards} shard{'s' * (self.shards != 1)}"


def begin(
    home: Home, stream: StreamSettings, *, engine: str, shards: int
) -> StreamSettings:
    """The settings for an engine that starts, checked and complete: from here on the log is read as they say.

    As `frozen`, and how records are read is written into the log when that changed, with an alert.

    Args:
        home: the home folder.
        stream: the settings as they are now.
        engine: the engine that starts.
        shards: how many it has.

    Returns:
        The settings with the stream's own key of ids.

    Raises:
        StateError: the stream was begun with other settings, another engine or another number of shards.
        LogError: the log is damaged.
    """
    begun = _begun(home, stream)
    stream = frozen(home, stream, engine=engine, shards=shards)
    number = reading.settle(Log(home.log(stream.name)), stream, begun=begun)
    if number is not None:
        text = f"from segment {number} of its log on records are read by other settings; those before it stay as they"
        text += (
            f" are, unless `fairway streams reset {stream.name}` reads all of them anew"
        )
        tell(home, stream.name, text)
    return stream


def _begun(home: Home, stream: StreamSettings) -> StreamSettings:
    """The settings with those of reading that an older version froze at the stream's first run."""
    stored = _stored(_path(home, stream.name)) or {}
    frozen_then = {name: stored[name] for name in reading.NAMES if name in stored}
    return (
        reading.with_reading(
            stream,
            reading.reading_of(stream) | frozen_then,
            where=f"stream {stream.name}: {_path(home, stream.name)}",
        )
        if frozen_then
        else stream
    )


def frozen(
    home: Home, stream: StreamSettings, *, engine: str, shards: int
) -> StreamSettings:
    """Makes or checks the record of a stream's topology; the settings with the stream's key of ids.

    The first run writes every setting that decides answers into `topology.json`; each later run must have the same
    ones. What an older version did not record counts as the default of now.

    Args:
        home: the home folder.
        stream: the settings as they are now.
        engine: the engine that they are checked for.
        shards: how many it has.

    Raises:
        StateError: the stream was begun with other settings, another engine or another number of shards.
    """
    path = _path(home, stream.name)
    stored = _stored(path)
    key = (
        home_key(home)
        if stored is None
        else str(stored.get("id_key", _DEFAULTS["id_key"]))
    )
    stream = replace(stream, id_key=key)
    wanted = _record(stream, engine=engine, shards=shards)
    if stored is None:
        write_record(path, wanted, private=True)
        return stream
    for key, value in wanted.items():
        before = stored.get(key, _DEFAULTS.get(key))
        if before != value:
            raise StateError(
                f"stream {stream.name!r} was begun with {key} = {before!r}, now it is {value!r}",
                hint=_hint(key, stream.name),
            )
    return stream


def keyed(home: Home, stream: StreamSettings) -> StreamSettings:
    """The settings with the stream's key of ids, for whoever only reads; as they are where it never ran."""
    stored = _stored(_path(home, stream.name))
    if stored is None:
        return stream
    return replace(stream, id_key=str(stored.get("id_key", _DEFAULTS["id_key"])))


def _hint(key: str, stream: str) -> str:
    if key in ("engine", "shards"):
        return f"`fairway streams reshard {stream}` takes the stream to what the settings say, or set it back"
    return f"set it back, or `fairway streams reset {stream}` begins the stream anew from its log"


def topology_of(home: Home, stream: str) -> Topology | None:
    """The topology in force, None when the stream has never run.

    Raises:
        StateError: the record cannot be read.
    """
    stored = _stored(_path(home, stream))
    if stored is None:
        return None
    names = [field.name for field in dataclasses.fields(Topology)]
    return Topology(**{name: stored[name] for name in names if name in stored})


def put_in_force(home: Home, stream: str, topology: Topology) -> None:
    """Replaces the topology of a stream that has run, the last step of a reshard (docs/adr/0011).

    The settings that decide answers stay as recorded. A crash leaves the old record or the new one.

    Raises:
        StateError: the stream has never run, or its record cannot be read.
    """
    path = _path(home, stream)
    stored = _stored(path)
    if stored is None:
        raise StateError(
            f"stream {stream!r} has never run",
            hint="nothing is fixed yet: change its settings",
        )
    write_record(path, stored | dataclasses.asdict(topology), private=True)


def home_key(home: Home) -> str:
    """The key by which new streams of a home hash the ids of their objects: 16 ASCII characters.

    Made at random once and stored for its owner alone in `id.key`. Whoever knows it could choose ids that all fall into
    one shard.

    Raises:
        StateError: the file that holds it was damaged.
    """
    path = home.root / "id.key"
    make_folder(home.root)
    with held_lock(home.root / ".id.key.lock"):
        if not path.exists():
            write_record(
                path, {"key": secrets.token_urlsafe(_KEY_LENGTH * 3 // 4)}, private=True
            )
        key = (read_record(path) or {}).get("key")
    if not isinstance(key, str) or len(key) != _KEY_LENGTH or not key.isascii():
        raise StateError(
            f"{path} holds no key", hint="remove it: streams that have run keep theirs"
        )
    return key


def generation_folder(home: Home, stream: str, generation: int | None = None) -> Path:
    """Where the engine of a generation keeps its state: `gN` in the stream's folder; of 0 the folder itself.

    Args:
        home: the home folder.
        stream: the name of the stream, which need not have run.
        generation: which one; None for the one in force.

    Raises:
        StateError: the record of the topology cannot be read.
    """
    if generation is None:
        topology = topology_of(home, stream)
        generation = topology.generation if topology else 0
    folder = home.stream(stream)
    return folder / f"g{generation}" if generation else folder


def _path(home: Home, stream: str) -> Path:
    return home.stream(stream) / TOPOLOGY_FILE


def _stored(path: Path) -> dict[str, Any] | None:
    stored = read_record(path)
    if stored is None and path.exists():
        raise StateError(
            f"{path} cannot be read",
            hint="it says which state of the stream is in force; restore it",
        )
    return stored


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The values as JSON has them."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def _record(stream: StreamSettings, *, engine: str, shards: int) -> dict[str, Any]:
    settings = {
        name: value
        for name, value in dataclasses.asdict(stream).items()
        if name not in _FREE
    }
    return _plain({**settings, "engine": engine, "shards": shards})


_DEFAULTS = _plain(
    {
        field.name: field.default
        for field in dataclasses.fields(StreamSettings)
        if field.default is not dataclasses.MISSING and field.name not in _FREE
    }
)
