"""How many records of feeds are decoded in a second of one core: GTFS-realtime, AIS, SBS-1; made ones, always the same.

    python bench/feed_formats.py [--records 20000] [--repeat 7]

Prints JSON: thousands of records a second of CPU time, the best of some repetitions, with the four columns of a fix
alone and with attributes beside them.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from functools import reduce

import numpy as np
from google.transit import gtfs_realtime_pb2 as pb
from pyais.encode import encode_dict

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode

_PLACE = {"x": "longitude", "y": "latitude"}
BUSES = StreamSettings(
    name="buses",
    format="gtfs-rt",
    columns=Columns(object="vehicle_id", event_ts="timestamp", **_PLACE),
    attributes={
        "trip_id": "string",
        "route_id": "string",
        "bearing": "double",
        "speed": "double",
        "stop_id": "string",
        "current_status": "string",
    },
)
SHIPS = StreamSettings(
    name="ships",
    format="ais",
    columns=Columns(object="mmsi", event_ts="time", **_PLACE),
    attributes={
        "sog": "double",
        "cog": "double",
        "heading": "long",
        "name": "string",
        "callsign": "string",
        "shiptype": "long",
    },
)
PLANES = StreamSettings(
    name="planes",
    format="sbs1",
    columns=Columns(object="hex", event_ts="time", **_PLACE),
    time_unit="%Y/%m/%d %H:%M:%S",
    attributes={
        "callsign": "string",
        "altitude": "double",
        "ground_speed": "double",
        "track": "double",
        "vertical_rate": "double",
    },
)
_START_S = 1_700_000_000
_ODD_SHARE = 10  # of so many messages of ships one is about the ship, as in a recording


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    payloads = {
        "gtfs-rt": (feed(args.records), BUSES),
        "gtfs-rt, 600 in a message": (feed(600), BUSES),
        "gtfs-rt, 20 in each message": (feed(20) * (args.records // 20), BUSES),
        "gtfs-rt, one message of 20": (feed(20), BUSES),
        "ais": (sentences(args.records), SHIPS),
        "sbs1": (messages(args.records), PLANES),
    }
    figures = {
        name: figures_of(payload, stream, args.repeat)
        for name, (payload, stream) in payloads.items()
    }
    about = {"python": platform.python_version(), "machine": platform.machine()}
    print(json.dumps({"records": args.records, **about, "figures": figures}, indent=1))


def figures_of(payload: bytes, stream: StreamSettings, repeat: int) -> dict[str, float]:
    """Thousands of records a second, without and with attributes, and the share that are fixes."""
    decoded = decode(payload, stream, arrival_us=(_START_S + 86_400) * 1_000_000)
    return {
        "alone": rate(payload, replace(stream, attributes={}), repeat),
        "with_attributes": rate(payload, stream, repeat),
        "fixes_share": round(len(decoded.fixes) / decoded.rows, 2),
    }


def rate(payload: bytes, stream: StreamSettings, repeat: int) -> float:
    """Thousands of records a second of CPU time, in the best repetition."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        decoded = decode(payload, stream, arrival_us=(_START_S + 86_400) * 1_000_000)
        best = min(best, time.process_time() - start)
    return round(decoded.rows / best / 1000, 1)


def feed(count: int) -> bytes:
    """A message of GTFS-realtime, with what feeds of cities say of a vehicle."""
    rng, message = np.random.default_rng(1), pb.FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    message.header.timestamp = _START_S
    for number, (x, y) in enumerate(rng.uniform(-80, 80, (count, 2)).tolist()):
        vehicle = message.entity.add(id=f"{_START_S}_{number}").vehicle
        vehicle.vehicle.id = vehicle.vehicle.label = str(number % 2000)
        vehicle.trip.trip_id = f"block_{number % 500}_trip_{number % 20}"
        vehicle.trip.route_id = str(number % 100)
        vehicle.position.longitude, vehicle.position.latitude = x, y
        vehicle.position.bearing, vehicle.position.speed = number % 360, number % 20
        vehicle.timestamp = _START_S - number % 60
        vehicle.stop_id, vehicle.current_status = f"stop_{number % 900}", 1
    return message.SerializeToString()


def sentences(count: int) -> bytes:
    """Sentences of AIS with tag blocks: positions of class A and, one in ten, what ships say of themselves."""
    rng, told = np.random.default_rng(2), []
    for number, (x, y) in enumerate(rng.uniform(-80, 80, (count, 2)).tolist()):
        message = {"type": 1, "mmsi": 211_000_000 + number % 2000, "lon": x, "lat": y}
        message |= {"speed": number % 20, "course": number % 360, "heading": number % 9}
        if number % _ODD_SHARE == 0:
            message |= {"type": 5, "shipname": f"SHIP {number % 2000}", "ship_type": 70}
        tags = f"c:{_START_S + number // 100}"
        total = reduce(lambda left, right: left ^ right, tags.encode())
        parts = encode_dict(message, talker_id="AI", sentence_type="VDM", seq_id=3)
        told += [f"\\{tags}*{total:02X}\\{part}\n" for part in parts]
    return "".join(told).encode()


def messages(count: int) -> bytes:
    """Lines of SBS-1, a third each of positions, speeds and callsigns."""
    rng, told = np.random.default_rng(3), []
    for number, (x, y) in enumerate(rng.uniform(-80, 80, (count, 2)).tolist()):
        kind, icao = (3, 4, 1)[number % 3], f"{0x3C0000 + number % 500:06X}"
        stamp = f"2023/11/14,22:{number // 60 % 60:02d}:{number % 60:02d}.635"
        said = {
            1: f"EWG{number % 500:04d} ,,,,,,",
            3: f",40025,,,{y:.5f},{x:.5f},",
            4: ",,443,311,,,64",
        }[kind]
        told.append(f"MSG,{kind},1,1,{icao},1,{stamp},{stamp},{said},,0,0,0,0\n")
    return "".join(told).encode()


if __name__ == "__main__":
    main()
