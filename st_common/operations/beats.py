"""The heartbeats of all streams as a table, `stream_status`: what the status files say at each tick, kept for SQL."""

from collections.abc import Iterable
from dataclasses import asdict

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.operations.status import read_all_status

_APP = "supervisor"


def record_beats(home: Home, streams: Iterable[str], *, now_us: int) -> int:
    """Appends the last heartbeat of each job of some streams to `stream_status`, unless it was recorded before.

    One commit for all of them, so that a tick costs the same for one stream as for fifty.

    Args:
        home: the home folder.
        streams: names of streams.
        now_us: now, us since 1970; heartbeats from after it wait for the next call.

    Returns:
        How many were appended.
    """
    path = home.table("stream_status")
    recorded_us = tables.committed(path, _APP) or 0
    beats = [
        asdict(status) | {"stream": stream}
        for stream in streams
        for status in read_all_status(home.stream(stream))
        # The app's version is the time of the last call: what was said by then is in the table.
        if recorded_us < status.beat_ts <= now_us
    ]
    if not beats:
        return 0
    contract = load_contract("stream_status")
    schema = pa.schema(
        [field for field in contract.arrow_schema() if field.name != "date"]
    )
    columns = [
        pa.array([beat[field.name] for beat in beats], field.type) for field in schema
    ]
    tables.append(
        path,
        pa.Table.from_arrays(columns, schema=schema),
        contract,
        app=_APP,
        version=now_us,
    )
    return len(beats)
