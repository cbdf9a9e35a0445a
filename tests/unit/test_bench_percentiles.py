"""The form of latencies: what they leave out, and what fails a run."""

import pytest

from bench.percentiles import latencies, percentiles


def test_percentiles_reach_from_the_least_to_the_greatest():
    told = percentiles([value / 1000 for value in range(101)], "ms")
    assert told == {f"p{p}_ms": float(p) for p in (0, 50, 90, 95, 99, 100)}
    assert percentiles([2.0], "s")["p100_s"] == 2.0


def test_the_warm_up_is_counted_and_not_measured():
    sent = {name: float(name) for name in range(10)}
    told = {name: at + (9.0 if at <= 4 else 0.5) for name, at in sent.items()}
    found = latencies(sent, told, warm_s=4.0)
    assert (found["sent"], found["told"], found["measured"]) == (10, 10, 5)
    assert found["p0_ms"] == found["p100_ms"] == 500.0


@pytest.mark.parametrize(
    ("told", "warm_s", "why"),
    [
        ({"a": 1.0}, 0.0, "1 of 2 were not told"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, 0.0, "1 that nobody sent"),
        ({"a": 1.0, "b": 1.0}, 9.0, "warm-up"),
    ],
)
def test_a_run_that_lost_something_or_measured_nothing_fails(told, warm_s, why):
    with pytest.raises(SystemExit, match=why):
        latencies({"a": 0.0, "b": 0.5}, told, warm_s=warm_s)
