"""Metrics of the requests themselves: how many of which kind, how long they took, what was refused."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

_BOUNDS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class HttpMetrics:
    """Counts requests by endpoint, as its address stands in the description of the API: never by what is in it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
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
