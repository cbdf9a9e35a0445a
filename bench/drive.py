"""Drives an engine round by round: lays segments into the log, waits for the commit, says what took how long."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine import committing, local
from st_common.engine.journal import Journal
from st_common.engine.owner import owned
from st_common.memory import keep_freed_memory

Land = Callable[[], None]
_PHASES = {
    "packets_in": "decode and pack",
    "step": "step",
}


@dataclass
class Timing:
    """One round: seconds from its last segment's arrival to the fsynced journal (local) and to the table's commit.

    `cpu_s` is the processor time of this process meanwhile. `worker` is what Spark's Python workers did of it.
    """

    commit_s: float
    cpu_s: float
    journal_s: float | None = None
    worker: dict[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)


def values_of(counters: Any) -> dict[str, int]:
    """Counters as a dict."""
    return {name: getattr(counters, name) for name in counters.__dataclass_fields__}


class OnLocal:
    """The local engine in this process."""

    name = "local"

    def __init__(
        self,
        home: Home,
        stream: StreamSettings,
        *,
        watch: Callable[[], Any] = nullcontext,
    ) -> None:
        keep_freed_memory()  # as whoever runs a stream
        self._engine, self._watch = local.LocalEngine(home, stream), watch

    def round(self, land: Land) -> Timing:
        """Lands segments, then takes all that the log has and commits it."""
        land()
        before = values_of(self._engine.totals.counters)
        phases: dict[str, float] = {}
        with timers(phases), self._watch():
            started_s, busy_s = time.perf_counter(), time.process_time()
            while self._engine.batch():
                pass
            journal_s = time.perf_counter() - started_s
            self._engine.commit()
            commit_s, cpu_s = (
                time.perf_counter() - started_s,
                time.process_time() - busy_s,
            )
        phases["commit to the table"] = commit_s - journal_s
        phases["rest"] = (
            journal_s - sum(phases.values()) + phases["commit to the table"]
        )
        after = values_of(self._engine.totals.counters)
        counters = {name: after[name] - before[name] for name in after}
        return Timing(
            commit_s=commit_s,
            cpu_s=cpu_s,
            journal_s=journal_s,
            phases=phases,
            counters=counters,
        )

    def close(self) -> dict[str, Any]:
        """Closes the engine; nothing more to tell."""
        self._engine.close()
        return {}


@contextmanager
def timers(phases: dict[str, float]) -> Iterator[None]:
    """Measures the local engine's phases while it is entered: seconds by name."""

    def timed(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            started_s = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                phases[name] = phases.get(name, 0.0) + time.perf_counter() - started_s

        return run

    with ExitStack() as stack:
        for owner, attribute, name in [
            *((local, attribute, name) for attribute, name in _PHASES.items()),
            (committing, "settled", "order of changes"),
            (Journal, "append", "journal"),
        ]:
            original = getattr(owner, attribute)
            setattr(owner, attribute, timed(original, name))
            stack.callback(setattr, owner, attribute, original)
        yield


class OnSpark:
    """Tasks that stay on a Spark session in this process."""

    name = "spark"

    def __init__(self, home: Home, stream: StreamSettings) -> None:
        from st_common.spark.resident import engine_on
        from st_common.spark.session import session
        from st_common.spark.task_settings import TaskSettings

        self._stack = ExitStack()
        owner = self._stack.enter_context(owned(home, stream.name, engine="spark"))
        spark = session("bench", log_file=home.root / "spark.log", extended=False)
        self._stack.callback(spark.stop)
        running = engine_on(spark, home, TaskSettings.of(home, stream), owner)
        self._engine = self._stack.enter_context(running)

    def round(self, land: Land) -> Timing:
        """Lands segments, then has all that the log has stepped, and commits it."""
        land()
        before = values_of(self._engine.totals.counters)
        started_s, busy_s = time.perf_counter(), time.process_time()
        while self._engine.batch():
            pass
        journal_s = time.perf_counter() - started_s
        self._engine.commit()
        commit_s = time.perf_counter() - started_s
        cpu_s = time.process_time() - busy_s
        after = values_of(self._engine.totals.counters)
        return Timing(
            commit_s=commit_s,
            cpu_s=cpu_s,
            journal_s=journal_s,
            phases={"commit to the table": commit_s - journal_s},
            counters={name: after[name] - before[name] for name in after},
        )

    def close(self) -> dict[str, Any]:
        """Closes the engine; nothing more to tell."""
        self._engine.close()
        self._stack.close()
        return {}
