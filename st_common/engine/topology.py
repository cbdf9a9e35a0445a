"""What is fixed when a stream is first run: the engine, its shards, and every setting that decides answers."""

import dataclasses
import json
from typing import Any

from st_common.errors import StateError
from st_common.home import Home
from st_common.settings import StreamSettings

# What may change between two runs: it does not decide what a log's rows mean.
_FREE = (
    "running", "group", "max_speed_mps", "attributes", "engine", "shards", "max_ahead_s",
    "latest_every", "latest_flush_s", "snapshot_s",
)  # fmt: skip


def frozen(home: Home, stream: StreamSettings, *, engine: str, shards: int) -> None:
    """Makes or checks the record of a stream's topology.

    Raises:
        StateError: the stream was begun with other settings, another engine or another number of shards.
    """
    path = home.stream(stream.name) / "topology.json"
    wanted = _record(stream, engine=engine, shards=shards)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(wanted, indent=1, sort_keys=True))
        return
    stored = json.loads(path.read_text())
    for key, value in wanted.items():
        if stored.get(key) != value:
            raise StateError(
                f"stream {stream.name!r} was begun with {key} = {stored.get(key)!r}, now it is {value!r}",
                hint="set it back, or run the stream in a new home folder",
            )


def _record(stream: StreamSettings, *, engine: str, shards: int) -> dict[str, Any]:
    settings = {name: value for name, value in dataclasses.asdict(stream).items() if name not in _FREE}
    record: dict[str, Any] = json.loads(json.dumps({**settings, "engine": engine, "shards": shards}))
    return record
