"""`fairway try --page`: the page over a home that is made for one file, which is replayed into it, until Ctrl-C."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from st_common.client.evaluated_stream import Given, read_as, stream_name
from st_common.client.evaluation import QUERY, load_layer
from st_common.client.home_client import HomeClient
from st_common.client.interface import is_select
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import event_times
from st_common.detect.report import to_toml
from st_common.errors import ConfigError, FairwayError
from st_common.installed import own_version, place_of
from st_common.log.log import Log
from st_common.replay.chunks import chunks
from st_common.replay.files import SEGMENT_BYTES, replay
from st_common.replay.source import NamedFile, files_to_read, opened
from st_common.server.installation import Installation
from st_common.server.serve import listening, serve_until_signal

TAKES_S = 120.0
"""So long a replay takes, unless somebody says how fast it is."""
_LATEST_FLUSH_S = 1
"""A short replay is over before the usual minute: the past of a moment ago should be there."""
Say = Callable[[str], None]
Read = Callable[[Mapping[str, Any], Sequence[str]], None]


class _OverError(Exception):
    """The server ends, and with it the replay."""


def serve_trial(
    file: str,
    query: str,
    given: Given,
    *,
    port: int,
    speed: float | None,
    read: Read,
    say: Say,
) -> None:
    """Serves the page with a query over a file that is replayed, until SIGINT or SIGTERM; then nothing is left.

    Args:
        file: a file, `sample:NAME`, or `-`.
        query: what to ask, FROM data.
        given: what the file does not say of itself.
        port: on 127.0.0.1; 0: any that is free.
        speed: how many times as fast as its event times the file is replayed; None: so that it takes two minutes.
        read: is given the settings by which records are read, and what should be looked at, before anything is served.
        say: is told the address, and what goes on.

    Raises:
        ConfigError: the file cannot be read, the port is taken, or the speed is not above 0.
        QueryError: what is wrong with the query.
    """
    if speed is not None and not speed > 0:
        raise ConfigError(f"--speed {speed:g}", hint="above 0")
    with (
        listening("127.0.0.1", port) as listener,
        files_to_read(Path(place_of(file))) as files,
        tempfile.TemporaryDirectory(
            prefix="fairway-try-", ignore_cleanup_errors=True
        ) as folder,
    ):
        home, stream = _made(Path(folder), files, query, given, read, say)
        place = Installation(home=home, conf=home.root / "conf")
        serving = serve_until_signal(place, listener, version=own_version(), told=say)
        with _replaying(home, stream, files, speed, say):
            asyncio.run(serving)


def _made(
    folder: Path,
    files: Sequence[NamedFile],
    query: str,
    given: Given,
    read: Read,
    say: Say,
) -> tuple[Home, StreamSettings]:
    """A home with the stream, the layers and the query, and no fix yet."""
    name = stream_name(query, files[0])
    seen, stream = read_as(files, name, given)
    read(seen.table, seen.notes)
    home = Home(folder / "home")
    conf = home.root / "conf"
    conf.mkdir(parents=True)
    table = {"latest_flush_s": _LATEST_FLUSH_S, **seen.table}
    (conf / "streams.toml").write_text(to_toml(name, table), encoding="utf-8")
    for layer, file in given.layers.items():
        for note in load_layer(home, layer, Path(file), stream):
            say(f"note: {note}")
    client = HomeClient(home, streams={name: stream}, owner="")
    client.register(query, QUERY if is_select(query) else None)
    return home, stream


@contextmanager
def _replaying(
    home: Home,
    stream: StreamSettings,
    files: Sequence[NamedFile],
    speed: float | None,
    say: Say,
) -> Iterator[None]:
    """Replays the files in a thread, which has ended when this is left."""
    over = threading.Event()

    def run() -> None:
        try:
            say(_replayed(home, stream, files, speed, over, say))
        except _OverError:
            pass
        except FairwayError as error:
            say(f"{stream.name}: the replay ended: {error}")

    thread = threading.Thread(target=run, name="replay")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _replayed(
    home: Home,
    stream: StreamSettings,
    files: Sequence[NamedFile],
    speed: float | None,
    over: threading.Event,
    say: Say,
) -> str:
    """Replays the files to their end, and says what came.

    Raises:
        _OverError: the server ends.
    """

    def refuse_to_go_on(_records: int = 0) -> None:
        if over.is_set():
            raise _OverError

    def sleep(seconds: float) -> None:
        over.wait(seconds)
        refuse_to_go_on()

    paths = [file.path for file in files]
    seconds = _span_s(paths, stream)
    chosen = max(seconds / TAKES_S, 1.0) if speed is None else speed
    say(
        f"{stream.name}: {seconds:,.0f} s of event time are replayed at {chosen:g} x, in {seconds / chosen:,.0f} s"
    )
    report = replay(
        Log(home.log(stream.name)),
        paths,
        stream,
        rate="event",
        speed=chosen,
        sleep=sleep,
        progress=refuse_to_go_on,
    )
    return f"{stream.name}: the replay is over, {report.records:,} records; the page stays until Ctrl-C"


def _span_s(paths: Sequence[Path], stream: StreamSettings) -> float:
    """How many seconds lie between the first and the last fix of some files."""
    ends_us: list[int] = []
    for path in paths:
        with opened(path, encoding=stream.encoding) as file:
            for chunk in chunks(file.source, stream, size=SEGMENT_BYTES):
                whole = chunk.payload(0, len(chunk.spans))
                times_us, known = event_times(whole, stream)
                if known.any():
                    told_us = times_us[known]
                    ends_us += [int(told_us.min()), int(told_us.max())]
    return (max(ends_us) - min(ends_us)) / 1e6 if ends_us else 0.0
