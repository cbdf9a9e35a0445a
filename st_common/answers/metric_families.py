"""Samples put together into the families that Prometheus reads: one of each name, with all of its labels."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

_PREFIX = "fairway_"
_HELP = {
    "stream_health": "1 for how a stream is, 0 for what it is not.",
    "delivery_health": "1 for how a delivery is, 0 for what it is not.",
    "stream_unreadable": "1 when log or tables of a stream cannot be read.",
    "stream_look_timestamp_seconds": "When the supervisor looked at a stream last.",
    "lag_seconds": "How long the oldest segment waits that the engine has not committed.",
    "lag_segments": "How many segments wait for the engine.",
    "archive_lag_seconds": "How long the oldest segment waits that is not archived.",
    "log_segments": "Segments of the log.",
    "job_beat_timestamp_seconds": "When a job spoke last.",
    "job_segment": "The segment that a job reads next.",
    "job_clock_timestamp_seconds": "The event time up to which a job's answers are settled.",
    "fixes": "Records that are fixes.",
    "rejects": "Records that are none, as the engine counts them.",
    "late": "Fixes that came too late to take effect.",
    "double": "Fixes with the event time of an earlier one of their object.",
    "cut": "Fixes that windows gave up.",
    "changes": "Changes that were told.",
    "filtered_fixes": "Fixes that a position filter took out, by reason.",
    "filtered_out_records": "Records that the stream's where did not let in, by clause.",
    "nulled_fixes": "Fixes in which an attribute could not be read.",
    "rejected_records": "Rows of the table of rejects, by reason.",
    "query_changes": "Rows of the table of changes, by query.",
    "query_members": "Members of the answer of a query: the sum of the signs of its changes.",
    "commit_latency_seconds": "How long segments waited from their arrival to the commit of their changes.",
    "state_bytes": "Bytes of the states of a stream's engines.",
    "table_files": "Data files of the newest version of a table.",
    "table_bytes": "Bytes of these files.",
    "delivered_changes": "Changes that a receiver has taken.",
    "dead_letters": "Changes that a receiver will never take.",
    "delivery_behind": "1 while committed changes wait for a receiver.",
    "worker_cpu_seconds": "Seconds of CPU that a process of a stream took.",
    "worker_memory_bytes": "Memory that a process of a stream holds.",
    "worker_disk_free_bytes": "What is free on the disk of a process of a stream.",
    "alerts": "Lines of alerts.jsonl.",
}
Labels = Mapping[str, str]
F = TypeVar("F", CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily)


class Families:
    """Metric families by name, in the order in which they came; all of them begin with `fairway_`."""

    def __init__(self) -> None:
        self._by_name: dict[str, Metric] = {}

    def gauge(self, name: str, value: float, labels: Labels) -> None:
        """Adds a value that goes up and down."""
        family = self._family(GaugeMetricFamily, name, labels)
        family.add_metric(list(labels.values()), value)

    def counter(self, name: str, value: float, labels: Labels) -> None:
        """Adds a count that only grows, shown as `NAME_total`; it may begin anew."""
        family = self._family(CounterMetricFamily, name, labels)
        family.add_metric(list(labels.values()), value)

    def histogram(
        self,
        name: str,
        buckets: Sequence[tuple[str, float]],
        total: float,
        labels: Labels,
    ) -> None:
        """Adds a histogram.

        Args:
            name: of the family.
            buckets: upper bounds, rising, with how many values are not above each; the last bound is `+Inf`.
            total: the sum of all values.
            labels: of the histogram.
        """
        family = self._family(HistogramMetricFamily, name, labels)
        family.add_metric(list(labels.values()), list(buckets), sum_value=total)

    def made(self) -> list[Metric]:
        """The families."""
        return list(self._by_name.values())

    def _family(self, kind: type[F], name: str, labels: Labels) -> F:
        known = self._by_name.get(name)
        if known is None:
            known = kind(_PREFIX + name, _HELP[name], labels=list(labels))
            self._by_name[name] = known
        assert isinstance(known, kind)  # noqa: S101 - a name has one kind
        return known
