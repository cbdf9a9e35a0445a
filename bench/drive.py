"""Drives an engine round by round: lays segments into the log, waits for the commit, says what took how long."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from st_common.capture.log import Log
from st_common.engine import committing, local
from st_common.engine.journal import Journal
from st_common.engine.owner import owned
from st_common.home import Home
from st_common.memory import keep_freed_memory
from st_common.position import position_of
from st_common.settings import StreamSettings

Land = Callable[[], None]
_TIMEOUT_S, _LOOK_S = 1800.0, 1.0
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
    """A streaming query on Spark in this process; rounds are landed while its source is held back."""

    name = "spark"

    def __init__(self, home: Home, stream: StreamSettings) -> None:
        from bench.worker_times import WorkerTimes, timed_processor
        from st_common.spark import stream as streaming
        from st_common.spark.session import session
        from st_common.spark.shard import read_result

        driver, self.committed, self.committed_s = self, 0, 0.0

        class Timed(streaming.Sink):
            def __call__(self, batch, batch_id):  # noqa: ANN001, ANN204
                started_s = time.perf_counter()
                rows = batch.collect()
                driver.add(
                    "source, shuffle, workers, state (until collected)",
                    time.perf_counter() - started_s,
                )
                for row in rows:
                    driver.count(read_result(bytes(row["blob"]))[1]["counters"])
                started_s = time.perf_counter()
                super().__call__(_Collected(rows), batch_id)
                driver.committed_s = time.perf_counter()
                driver.add(
                    "order of changes and commit to the table",
                    driver.committed_s - started_s,
                )
                driver.committed = self.committed + 1

        self._stack = ExitStack()
        owner = self._stack.enter_context(owned(home, stream.name, engine="spark"))
        spark = session("bench", log_file=home.root / "spark.log", extended=False)
        self._stack.callback(spark.stop)
        folder = home.stream(stream.name) / "spark"
        self._log, self._hold = Log(home.log(stream.name)), folder / "hold"
        self._sink = Timed(home=home, stream=stream, owner=owner)
        self._phases: dict[str, float] = {}
        self._counters: dict[str, int] = {}
        home.root.mkdir(parents=True, exist_ok=True)
        self._workers = WorkerTimes(home.root.resolve())
        streaming.ShardProcessor = timed_processor(home.root.resolve())
        self._query = streaming.start(
            spark,
            streaming.feed_of(home, stream),
            self._sink,
            checkpoint=folder / "checkpoint",
            hold=self._hold,
        )

    def count(self, counters: dict[str, int]) -> None:
        """Adds a shard's counters to the round's."""
        for name, value in counters.items():
            self._counters[name] = self._counters.get(name, 0) + value

    def add(self, phase: str, seconds: float) -> None:
        """Adds to a phase of the round."""
        self._phases[phase] = self._phases.get(phase, 0.0) + seconds

    def round(self, land: Land) -> Timing:
        """Lands segments at once, as far as the source can see, and waits until all are committed."""
        self._phases, self._counters = {}, {}
        self._hold.touch()
        time.sleep(0.1)  # a look at the log that is under way ends
        land()
        end = position_of(self._log.end(), 0)
        started_s, busy_s = time.perf_counter(), time.process_time()
        self._hold.unlink()
        looked_s = started_s
        while self.committed < end:
            time.sleep(0.002)
            if time.perf_counter() - looked_s > _LOOK_S:
                looked_s = time.perf_counter()
                self._look(looked_s - started_s)
        commit_s, cpu_s = self.committed_s - started_s, time.process_time() - busy_s
        phases = dict(self._phases)
        phases["planning, offsets, waiting"] = commit_s - sum(phases.values())
        return Timing(
            commit_s=commit_s,
            cpu_s=cpu_s,
            phases=phases,
            counters=dict(self._counters),
            worker=self._workers.new(),
        )

    def _look(self, waited_s: float) -> None:
        if waited_s > _TIMEOUT_S:
            raise SystemExit("a round took longer than half an hour")
        if not self._query.isActive:
            raise SystemExit(f"the stream has ended: {self._query.exception()}")

    def close(self) -> dict[str, Any]:
        """Stops; gives what Spark says of its batches, medians in milliseconds."""
        self._hold.touch()
        while (
            self._query.status["isTriggerActive"]
            and self._query.status["isDataAvailable"]
        ):
            time.sleep(0.05)
        time.sleep(0.5)
        progress = [p for p in self._query.recentProgress if p["numInputRows"]]
        self._query.stop()
        self._stack.close()
        return {"spark": _medians(progress)}


def _medians(progress: list[Any]) -> dict[str, float]:
    """Of the second half of the batches, which are the warm ones."""
    values: dict[str, list[float]] = {}
    for one in progress[len(progress) // 2 :]:
        state = one["stateOperators"][0] if one["stateOperators"] else {}
        found = {
            **one["durationMs"],
            **{n: state[n] for n in ("allUpdatesTimeMs", "commitTimeMs") if n in state},
        }
        for name, value in found.items():
            values.setdefault(name, []).append(float(value))
    return {name: sorted(all_)[len(all_) // 2] for name, all_ in values.items()}


class _Collected:
    """A batch whose rows are here already."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def collect(self) -> list[Any]:
        return self._rows
