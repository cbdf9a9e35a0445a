"""What an installation is watched by: metrics for Prometheus, from status files and tables, without a JVM."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from st_common import tables
from st_common.answers.metric_families import Families
from st_common.answers.stream_state import COUNTS, StreamState, state_of
from st_common.answers.tallies import BOUNDS_S, Tallies
from st_common.config.home import Home
from st_common.config.streams import Streams
from st_common.contracts import contract_names
from st_common.errors import FairwayError, TableError
from st_common.operations.alerts import read_alerts
from st_common.operations.decide import BAD_CONFIG
from st_common.operations.judged import ALL_HEALTHS, health_now
from st_common.operations.status import StreamStatus, read_status
from st_common.position import segment_of

MOST_QUERIES = 500
OTHERS = "(others)"
"""The query under which those beyond the first `MOST_QUERIES` of a stream are added up."""

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class Metrics(Collector):
    """Looks at an installation each time it is asked, and remembers what it has counted so far.

    Labels are names from settings, contracts and code, and those of queries, of which a stream shows the 500 with the
    most changes; the others are added up. So there are no more series than an installation was set up for.

    Attributes:
        home: the home folder.
        streams: gives the settings of the streams, read anew at each look.
        deliveries: gives whether each delivery shall run, by name.
        now_us: the time of now, us since 1970.
    """

    home: Home
    streams: Callable[[], Streams]
    deliveries: Callable[[], Mapping[str, bool]]
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000
    _tallies: dict[str, Tallies] = field(default_factory=dict)
    _sizes: dict[Path, tuple[int, tuple[int, int]]] = field(default_factory=dict)
    _looking: threading.Lock = field(default_factory=threading.Lock)

    def describe(self) -> Iterator[Metric]:
        """None before it is asked: so that nothing is read when it is registered."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All metrics as they are now."""
        with self._looking:
            streams, deliveries = self.streams(), self.deliveries()
            families = Families()
            for name, stream in streams.items():
                self._add_stream(families, name, wanted=stream.running)
            for name in streams.broken:
                _add_health(families, "stream", name, BAD_CONFIG)
            for name, wanted in deliveries.items():
                self._add_delivery(families, name, wanted=wanted)
            self._add_alerts(families)
            return iter(families.made())

    def _add_stream(self, families: Families, name: str, *, wanted: bool) -> None:
        labels = {"stream": name}
        state = state_of(self.home, name, wanted=wanted, now_us=self.now_us())
        _add_health(families, "stream", name, state.health)
        try:
            tallies = self._tallies.setdefault(name, Tallies()).look(self.home, name)
        except (FairwayError, OSError) as error:
            _LOG.warning("stream %s is not looked at: %s", name, error)
            tallies = None
        is_readable = state.is_readable and tallies is not None
        families.gauge("stream_unreadable", float(not is_readable), labels)
        if tallies is None or not state.is_readable:
            return
        self._tallies[name] = tallies
        _add_state(families, labels, state)
        _add_tallies(families, labels, tallies)
        families.gauge("state_bytes", _state_bytes(self.home.stream(name)), labels)
        for table in contract_names():
            self._add_table(families, table, name)

    def _add_table(self, families: Families, table: str, stream: str) -> None:
        path = self.home.table(table, stream)
        try:
            version = tables.version(path)
            if version is None:
                return
            if self._sizes.get(path, (-1,))[0] != version:
                self._sizes[path] = (version, tables.stored(path))
        except TableError as error:
            _LOG.warning("table %s/%s is not looked at: %s", table, stream, error)
            return
        files, stored_bytes = self._sizes[path][1]
        labels = {"stream": stream, "table": table}
        families.gauge("table_files", files, labels)
        families.gauge("table_bytes", stored_bytes, labels)

    def _add_delivery(self, families: Families, name: str, *, wanted: bool) -> None:
        folder = self.home.delivery(name)
        health = health_now(folder, wanted=wanted, now_us=self.now_us())
        _add_health(families, "delivery", name, health)
        status = read_status(folder)
        if status is not None:
            labels = {"delivery": name}
            families.counter("delivered_changes", status.changes, labels)
            families.counter("dead_letters", status.rejects, labels)
            behind = max(status.end_position - status.position, 0)
            families.gauge("delivery_behind", float(behind > 0), labels)

    def _add_alerts(self, families: Families) -> None:
        levels = Counter(alert.level for alert in read_alerts(self.home))
        for level in ("error", "warning", "info"):
            families.counter("alerts", levels[level], {"level": level})


def _add_health(families: Families, kind: str, name: str, health: str) -> None:
    for each in ALL_HEALTHS:
        labels = {kind: name, "health": each}
        families.gauge(f"{kind}_health", float(each == health), labels)


def _add_state(families: Families, labels: dict[str, str], state: StreamState) -> None:
    if state.looked_us is not None:
        families.gauge("stream_look_timestamp_seconds", state.looked_us / 1e6, labels)
    families.gauge("lag_seconds", state.lag.seconds(state.as_of_us), labels)
    families.gauge("lag_segments", state.lag.segments, labels)
    archive_lag_s = state.archive_lag.seconds(state.as_of_us)
    families.gauge("archive_lag_seconds", archive_lag_s, labels)
    families.gauge("log_segments", state.segments, labels)
    for job in state.jobs:
        of_job = {**labels, "job": job.job}
        families.gauge("job_beat_timestamp_seconds", job.beat_ts / 1e6, of_job)
        families.gauge("job_segment", segment_of(job.position), of_job)
        if job.now_ts is not None:
            families.gauge("job_clock_timestamp_seconds", job.now_ts / 1e6, of_job)
    for number, worker in enumerate(state.workers):
        _add_worker(families, {**labels, "worker": str(number)}, worker)
    if state.said is not None:
        _add_counts(families, labels, state.said)


def _add_worker(
    families: Families, labels: dict[str, str], worker: Mapping[str, Any]
) -> None:
    """What a process takes; number 0 is the one that leads the stream."""
    families.counter("worker_cpu_seconds", worker["cpu_s"], labels)
    families.gauge("worker_memory_bytes", worker["memory_bytes"], labels)
    if worker["disk_free_bytes"] is not None:
        families.gauge("worker_disk_free_bytes", worker["disk_free_bytes"], labels)


def registry_of(metrics: Metrics) -> CollectorRegistry:
    """A registry of Prometheus's client with these metrics alone: none of the process that shows them."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry


def _add_counts(
    families: Families, labels: dict[str, str], status: StreamStatus
) -> None:
    for name in COUNTS:
        families.counter(name, getattr(status, name), labels)
    for reason, count in status.filtered.items():
        families.counter("filtered_fixes", count, {**labels, "reason": reason})
    for clause, count in status.filtered_out.items():
        families.counter("filtered_out_records", count, {**labels, "clause": clause})
    for attribute, count in status.nulled.items():
        families.counter("nulled_fixes", count, {**labels, "attribute": attribute})


def _add_tallies(families: Families, labels: dict[str, str], tallies: Tallies) -> None:
    for reason, count in sorted(tallies.rejects.items()):
        families.counter("rejected_records", count, {**labels, "reason": reason})
    for query, (changes, members) in _shown(tallies).items():
        of_query = {**labels, "query": query}
        families.counter("query_changes", changes, of_query)
        families.gauge("query_members", members, of_query)
    bounds = [*(f"{bound:g}" for bound in BOUNDS_S), "+Inf"]
    buckets = list(zip(bounds, tallies.latency.cumsum().tolist(), strict=True))
    families.histogram("commit_latency_seconds", buckets, tallies.latency_sum_s, labels)


def _shown(tallies: Tallies) -> dict[str, tuple[int, int]]:
    """Changes and members by query, of those with the most changes; the rest are `OTHERS`."""
    ranked = [name for name, _ in tallies.changes.most_common()]
    shown = {
        name: (tallies.changes[name], tallies.members[name])
        for name in ranked[:MOST_QUERIES]
    }
    rest = ranked[MOST_QUERIES:]
    if rest:
        shown[OTHERS] = (
            sum(tallies.changes[name] for name in rest),
            sum(tallies.members[name] for name in rest),
        )
    return shown


def _state_bytes(folder: Path) -> int:
    """The bytes of the states of a stream's engines: all of its folder but the log and the output of processes."""
    total = 0
    for child in folder.iterdir() if folder.is_dir() else ():
        if child.name == "log" or child.suffix in (".log", ".1"):
            continue
        for path in child.rglob("*") if child.is_dir() else [child]:
            total += _size(path)
    return total


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # an engine has let go of it meanwhile
        return 0
