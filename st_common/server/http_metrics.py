"""Metrics of the requests themselves: how many of which kind, how long they took, what was refused, who listens."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from st_common.server.changes import Hubs

_BOUNDS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class _Listening(Collector):
    """Who listens to changes."""

    def __init__(self, hubs: Hubs) -> None:
        self._hubs = hubs

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        listeners = GaugeMetricFamily(
            "fairway_listeners", "Who listens to changes.", labels=["stream"]
        )
        age = GaugeMetricFamily(
            "fairway_listeners_age_seconds",
            "Since the changes for those who listen were last looked for with success.",
            labels=["stream"],
        )
        failed = CounterMetricFamily(
            "fairway_listeners_looks_failed",
            "Looks for changes that failed, and were made again.",
            labels=["stream"],
        )
        dropped = CounterMetricFamily(
            "fairway_listeners_dropped",
            "Who listened and was let go.",
            labels=["stream", "reason"],
        )
        for name, hub in self._hubs.items():
            listeners.add_metric([name], hub.listeners)
            failed.add_metric([name], hub.state.failures)
            if hub.age_s is not None:
                age.add_metric([name], hub.age_s)
            for reason, count in tuple(hub.state.dropped.items()):
                dropped.add_metric([name, reason], count)
        yield from (listeners, age, failed, dropped)


class HttpMetrics:
    """Counts requests by endpoint, as its address stands in the description of the API: never by what is in it.

    Args:
        hubs: who listens.
    """

    def __init__(self, hubs: Hubs) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Listening(hubs))
        self._requests = Counter(
            "fairway_http_requests",
            "Requests by endpoint and status.",
            ["method", "endpoint", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "fairway_http_request_seconds",
            "From a request to its answer; of events to their beginning.",
            ["method", "endpoint"],
            buckets=_BOUNDS_S,
            registry=self._registry,
        )

    def count(self, method: str, endpoint: str, status: int) -> None:
        """Counts an answer.

        Args:
            method: of the request.
            endpoint: the address with braces where it varies; "refused" where nobody was asked.
            status: of HTTP.
        """
        self._requests.labels(method, endpoint, str(status)).inc()

    @contextmanager
    def timed(self, method: str, endpoint: str) -> Iterator[None]:
        """Measures how long an answer takes."""
        begun_s = time.perf_counter()
        yield
        self._seconds.labels(method, endpoint).observe(time.perf_counter() - begun_s)

    def text(self) -> bytes:
        """All of them as Prometheus reads them."""
        return generate_latest(self._registry)
