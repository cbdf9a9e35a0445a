"""Tasks that stay as threads of this process, for laws: they break off at will, and start anew as Spark starts them."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.archive_queue import ArchiveQueue
from st_common.engine.topology import frozen
from st_common.spark.exchange.crew import Crew
from st_common.spark.resident_engine import ResidentEngine
from st_common.spark.resident_task import serve
from st_common.spark.task_settings import TaskSettings

_AGAIN_S = 0.01


@contextlib.contextmanager
def tasks_of(crew: Crew, feed: object, count: int) -> Iterator[None]:
    """Has as many threads step shards for a crew, each started again when it breaks off, until the end."""
    over = threading.Event()

    def stay() -> None:
        while not over.is_set():
            with contextlib.suppress(Exception):  # Spark writes it into its log
                serve(crew.address, crew.keys, feed)  # type: ignore[arg-type]
            time.sleep(_AGAIN_S)

    threads = [threading.Thread(target=stay, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        crew.close()
        for thread in threads:
            thread.join(timeout=10)


def follow_resident(
    home: Home,
    stream: StreamSettings,
    *,
    shards: int = 3,
    tasks: int = 2,
    seed: int | None = None,
    batches: int | None = None,
) -> None:
    """Follows a log to its end by tasks that stay, and archives it.

    Args:
        home: the home folder.
        stream: the settings of the stream.
        shards: how many shards it has.
        tasks: how many tasks.
        seed: breaks tasks off at random places, and cuts the log at random; None: neither.
        batches: after so many it stops, and commits nothing more; None: at the end, with states stored.
    """
    rng = None if seed is None else Random(seed)
    keyed = replace(frozen(home, stream, engine="spark", shards=shards), shards=shards)
    feed = TaskSettings.of(home, keyed)
    crew, sink = Crew(shards, "127.0.0.1"), ArchiveQueue()
    archive = Archive(home, keyed, sink)
    with tasks_of(crew, feed, tasks):
        engine = ResidentEngine(home, feed, crew, sink=sink)
        try:
            _go_on(engine, archive, rng, batches)
        finally:
            engine.abandon()
    while batches is None and archive.batch():
        pass


def _go_on(
    engine: ResidentEngine, archive: Archive, rng: Random | None, batches: int | None
) -> None:
    done, crew = 0, engine._crew
    while batches is None or done < batches:
        if rng is not None:
            engine.take_at_most(rng.choice((1, 2, 3, 7)))
            _break_some(engine, crew, rng)
        if not engine.batch():
            break
        if rng is not None and rng.random() < 0.3:
            archive.batch()
        done += 1
    if batches is None:
        engine.close()


def _break_some(engine: ResidentEngine, crew: Crew, rng: Random) -> None:
    """Now and then a task breaks off, a second has passed, or states are stored."""
    if rng.random() < 0.3:
        crew.break_off(rng.randrange(4))
    if rng.random() < 0.4:
        engine.commit()
    if rng.random() < 0.3:
        engine.store()
