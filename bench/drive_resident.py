"""Drives tasks that stay round by round, as `bench.drive` does other engines."""

import time
from contextlib import ExitStack
from typing import Any

from bench.drive import Land, Timing, values_of
from st_common.engine.owner import owned
from st_common.home import Home
from st_common.settings import StreamSettings


class OnResident:
    """Tasks that stay on a Spark session in this process."""

    name = "resident"

    def __init__(self, home: Home, stream: StreamSettings) -> None:
        from st_common.spark import resident
        from st_common.spark.session import session

        self._stack = ExitStack()
        owner = self._stack.enter_context(owned(home, stream.name, engine="spark"))
        spark = session("bench", log_file=home.root / "spark.log", extended=False)
        self._stack.callback(spark.stop)
        feed = resident.feed_of(home, stream)
        running = resident.engine_on(spark, home, feed, owner)
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
