"""What Spark's Python workers spend on a shard: reading its packets and its state, the step, writing its state."""

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from st_common.spark import shard


def timed_processor(folder: Path) -> type[shard.ShardProcessor]:
    """A processor that says in `folder` what each call took; made here so that it travels to the workers by value."""
    target = str(folder)

    class Timed(shard.ShardProcessor):
        def handleInputRows(self, key, rows, timerValues):  # noqa: ANN001, ANN202, N802, N803 - Spark's signature
            self.spent, kept = {}, (shard.step, shard.result_blob)
            shard.step, shard.result_blob = (
                self._timed("step", kept[0]),
                self._timed("result", kept[1]),
            )
            started_s, busy_s = time.perf_counter(), time.process_time()
            try:
                made = list(super().handleInputRows(key, rows, timerValues))
            finally:
                shard.step, shard.result_blob = kept
            self.spent["all"] = time.perf_counter() - started_s
            self.spent["processor time"] = time.process_time() - busy_s
            with open(f"{target}/worker-{os.getpid()}.ndjson", "a") as out:  # noqa: PTH123 - nothing to import in workers
                out.write(json.dumps({"key": int(key[0]), **self.spent}) + "\n")
            yield from made

        def _state(self, *args: Any) -> Any:
            return self._timed("state read", super()._state)(*args)

        def _write(self, *args: Any) -> Any:
            return self._timed("state written", super()._write)(*args)

        def _timed(self, name: str, call: Any) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                started_s = time.perf_counter()
                result = call(*args, **kwargs)
                self.spent[name] = (
                    self.spent.get(name, 0.0) + time.perf_counter() - started_s
                )
                return result

            return run

    return Timed


class WorkerTimes:
    """Reads what the workers said since it was last asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = defaultdict(int)

    def new(self) -> dict[str, float]:
        """Seconds by name: sums over batches, of shards side by side the slowest."""
        shards: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for path in self._folder.glob("worker-*.ndjson"):
            lines = path.read_text().splitlines()
            for line in lines[self._read[path] :]:
                spent = json.loads(line)
                for name, seconds in spent.items():
                    if name != "key":
                        shards[spent["key"]][name] += seconds
            self._read[path] = len(lines)
        names = dict.fromkeys(name for spent in shards.values() for name in spent)
        return {name: max(spent[name] for spent in shards.values()) for name in names}
