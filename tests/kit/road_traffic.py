"""The rounds of Brinkhoff's generator as segments of a log, for benches and tests."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demo.simulation.network import CLASSES
from demo.simulation.traffic import Round, Traffic
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings

COLUMNS = ("object", "ts", "x", "y", "class", "gone")
START_MS = 1_781_913_600_000  # 2026-06-20 00:00 UTC
DECIMALS = 6


def payload(traffic_round: Round, traffic: Traffic) -> bytes:
    """A round as a CSV segment with its header: see `COLUMNS`; `ts` in ms, x and y with six decimals, gone 1 or empty.

    All reports of a unit have the same event time, that of the unit's end.
    """
    columns = (
        pc.binary_join_element_wise(
            "o", pc.cast(pa.array(traffic_round.object), pa.string()), ""
        ),
        pa.array([str(stamp_ms(traffic_round.unit, traffic))]).take(
            pa.array(np.zeros(len(traffic_round.object), np.int64))
        ),
        *(
            pc.cast(pa.array(np.round(at, DECIMALS)), pa.string())
            for at in (traffic_round.x, traffic_round.y)
        ),
        pa.array(CLASSES).take(pa.array(traffic_round.kind)),
        pa.array(["", "1"]).take(pa.array(traffic_round.gone.astype(np.int64))),
    )
    lines = pc.binary_join_element_wise(*columns, ",")
    text: bytes = (
        pc.binary_join(pa.array([[",".join(COLUMNS), *lines.to_pylist(), ""]]), "\n")[0]
        .as_py()
        .encode()
    )
    return text


def stamp_ms(unit: int, traffic: Traffic) -> int:
    """The event time of a unit's reports, in milliseconds since 1970."""
    return START_MS + round(unit * traffic.unit_s * 1000)


def object_ids(numbers: np.ndarray) -> list[str]:
    """The ids of objects in payloads."""
    return [f"o{number}" for number in numbers.tolist()]


def traffic_stream(name: str, traffic: Traffic, *, shards: int = 2) -> StreamSettings:
    """The settings of a stream of such segments: planar, a tick per time unit, with the class as an attribute."""
    return StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="object", event_ts="ts", x="x", y="y", gone="gone"),
        crs="planar",
        time_unit="ms",
        attributes={"class": "string"},
        max_ahead_s=None,
        tick_s=traffic.unit_s,
        shards=shards,
    )
