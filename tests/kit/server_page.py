"""A home with streams of three kinds, fixes for them, and the answers of a server as the page takes them apart."""

import json
import struct
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from st_common.config.home import Home
from st_common.server.installation import Installation

SETTINGS = """
[streams.ships]
format = "ndjson"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
attributes = { name = "string", draught = "double m" }
time_unit = "s"
max_ahead_s = "off"
silence_s = 100
engine = "local"

[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
engine = "local"
group = "town"

[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
lateness_s = 2
position_filter = { max_speed_mps = 50, accept_after_s = "off" }
"""
CSV, NDJSON = "text/csv", "application/x-ndjson"
ARRAYS = (
    ("index", "<u4"),
    ("lon", "<f8"),
    ("lat", "<f8"),
    ("event_s", "<f8"),
    ("heading", "<f4"),
    ("speed", "<f4"),
)


def place_in(folder: Path) -> Installation:
    """A home in a folder, with streams `ships` and `taxis` on the globe and `cars` in a plane."""
    conf = folder / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(folder / "home"), conf=conf)


def fix(ship: str, t: float, x: float, y: float, **more: Any) -> str:
    """A line of NDJSON for `ships`."""
    return json.dumps({"id": ship, "t": t, "x": x, "y": y, **more}) + "\n"


def post(client: httpx.Client, stream: str, text: str, media: str = NDJSON) -> None:
    """Posts fixes; they are durable then."""
    headers = {"content-type": media}
    told = client.post(f"/v1/streams/{stream}/fixes", content=text, headers=headers)
    assert told.status_code == 202, told.text


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The header and the arrays of an answer; every byte is accounted for."""
    (length,) = struct.unpack_from("<I", data)
    header, at = json.loads(data[4 : 4 + length]), 4 + length
    arrays = {}
    for name, kind in ARRAYS:
        assert at % 8 == 0
        arrays[name] = np.frombuffer(data, kind, header["count"], at)
        at += -(-arrays[name].nbytes // 8) * 8
    assert at == len(data)
    return header, arrays
