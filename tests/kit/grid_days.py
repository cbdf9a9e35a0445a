"""Days of fixes on a small grid, in order of time, which arrive out of order as far as the lateness allows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.log.log import Log

T0 = datetime(2024, 5, 1, tzinfo=UTC)
HOUR_S = 3600

Fix = tuple[str, int, float, float, bool]
"""An object's id, seconds after `T0`, x, y, and whether the object is gone by it."""

History = tuple[StreamSettings, list[Fix], list[int]]
"""A stream, its fixes as they arrive, and behind which of them segments end."""


def settings(**changed: Any) -> StreamSettings:
    """The stream `grid`: integer places on a plane, fixes as CSV."""
    return StreamSettings(
        name="grid",
        format="csv",
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        columns=Columns(object="id", event_ts="t", x="x", y="y", gone="gone"),
        **changed,
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Fixes of three days, none later than the lateness, and one behind them that closes the days."""
    lateness = draw(st.sampled_from([0, 0, 2 * HOUR_S]))
    at, fixes = 0, list[Fix]()
    for _ in range(draw(st.integers(5, 40))):
        at += draw(st.sampled_from([0, 1, 900, HOUR_S, 3 * HOUR_S, 9 * HOUR_S]))
        place = draw(st.tuples(st.integers(0, 10), st.integers(0, 10)))
        gone = draw(st.integers(0, 9)) == 0
        fixes.append((draw(st.sampled_from("abcd")), at, *place, gone))
    delays = [draw(st.integers(0, lateness)) for _ in fixes]
    order = sorted(range(len(fixes)), key=lambda n: (fixes[n][1] + delays[n], n))
    end = max(at, 3 * 24 * HOUR_S) + lateness + 60
    arriving = [*(fixes[n] for n in order), ("z", end, 99, 99, False)]
    cuts = draw(st.sets(st.integers(1, len(arriving)), min_size=2, max_size=5))
    silence = draw(st.sampled_from([None, 5.0 * HOUR_S]))
    stream = settings(lateness_s=float(lateness), silence_s=silence)
    return stream, arriving, sorted(cuts | {len(arriving)})


def segment(log: Log, fixes: Sequence[Fix]) -> None:
    """Appends fixes to a log as one segment."""
    epoch = round(T0.timestamp())
    lines = [
        f"{i},{epoch + t},{x},{y},{'true' if gone else ''}"
        for i, t, x, y, gone in fixes
    ]
    log.append("\n".join(["id,t,x,y,gone", *lines]).encode(), arrival_us=0)
