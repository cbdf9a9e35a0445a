"""Latencies in the form in which Spark's own benchmarks of streams give them.

Printed are p0 p50 p90 p95 p99 p100 of what was sent after the warm-up. What was sent and what was told is counted over
the whole run, warm-up and tail included; a run that lost something fails.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

PERCENTILES = (0, 50, 90, 95, 99, 100)
_UNITS = {"ms": (1000.0, 1), "s": (1.0, 3)}


def percentiles(seconds: Sequence[float] | np.ndarray, unit: str) -> dict[str, float]:
    """`p0_ms` to `p100_ms`, or the same in seconds.

    Args:
        seconds: at least one latency.
        unit: ms or s.
    """
    factor, digits = _UNITS[unit]
    values = np.percentile(np.asarray(seconds), PERCENTILES) * factor
    return {
        f"p{p}_{unit}": round(float(value), digits)
        for p, value in zip(PERCENTILES, values, strict=True)
    }


def latencies(
    sent_s: Mapping[Hashable, float],
    told_s: Mapping[Hashable, float],
    *,
    warm_s: float,
    unit: str = "ms",
) -> dict[str, float]:
    """How much was sent and told, and the percentiles of the time between, without the warm-up.

    Args:
        sent_s: when each was sent, by its name; a clock that both share.
        told_s: when each was told; the run is drained, so all are there.
        warm_s: what was sent so long after the first, or earlier, has no part in the percentiles.
        unit: ms or s.

    Raises:
        SystemExit: something that was sent was not told, or the other way round, or all was sent in the warm-up.
    """
    if sent_s.keys() != told_s.keys():
        missing, more = (
            len(sent_s.keys() - told_s.keys()),
            len(told_s.keys() - sent_s.keys()),
        )
        raise SystemExit(
            f"{missing} of {len(sent_s)} were not told, and {more} that nobody sent"
        )
    first_s = min(sent_s.values(), default=0.0) + warm_s
    late = [told_s[name] - at for name, at in sent_s.items() if at > first_s]
    if not late:
        raise SystemExit(f"all of {len(sent_s)} were sent in the {warm_s} s of warm-up")
    return {
        "sent": len(sent_s),
        "told": len(told_s),
        "measured": len(late),
        **percentiles(late, unit),
    }
