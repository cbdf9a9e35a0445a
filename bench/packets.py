"""Segments as raw bytes against packets: capture and run of one file, in pairs, with counts and positions compared.

.venv/bin/python -m bench.packets [--fixes 500000] [--rectangles 1000] [--pairs 5] [--time s|iso] [--format csv|ndjson]

Last a line of JSON: seconds of each way and CPU seconds of the process, which another's work on the machine disturbs
less; and CPU of decoding 10,000 segments of one fix each way.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode.packed import Encoder
from st_common.engine.run import run
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.replay.files import replay, wall_clock
from tests.kit.log_writer import bare_log

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    engine="local",
    snapshot_s=None,
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)
OBJECTS, SIDE = 20_000, 10_000.0
START_S = 1_600_000_000
SMALL = 10_000
CODECS = ("raw", "packet")


def main() -> None:
    """Runs the pairs and prints what they took; fails when the two ways differ in a row."""
    args = arguments()
    stream = replace(CARS, time_unit=args.time, format=args.format)
    took: dict[str, list[tuple[float, ...]]] = {codec: [] for codec in CODECS}
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        file = Path(folder) / "fixes"
        file.write_text(records(args.fixes, stream), encoding="utf-8")
        counts = set()
        for number in range(args.pairs + 1):
            for codec in CODECS[:: 1 if number % 2 else -1]:
                home = Home(Path(folder) / f"{codec}{number}")
                seconds, found = one(
                    home, replace(stream, codec=codec), file, args.rectangles
                )
                counts.add(found)
                if number:  # the first pair warms up
                    took[codec].append(seconds)
        if len(counts) != 1:
            raise SystemExit(f"raw and packet differ: {counts}")
        small = {
            codec: small_segments(Path(folder) / f"small-{codec}", stream, codec)
            for codec in CODECS
        }
    names = ("capture_s", "run_s", "cpu_s")
    figures = {
        codec: {
            name: statistics.median(one[at] for one in found)
            for at, name in enumerate(names)
        }
        for codec, found in took.items()
    }
    fixes, changes, _ = counts.pop()
    both = list(zip(took["raw"], took["packet"], strict=True))
    wall = [round(sum(packet[:2]) / sum(raw[:2]), 3) for raw, packet in both]
    cpu = [round(packet[2] / raw[2], 3) for raw, packet in both]
    shown = {
        "fixes": fixes,
        "changes": changes,
        "wall_packet_of_raw": wall,
        "cpu_packet_of_raw": cpu,
    }
    print(json.dumps({**shown, "small_us": small, **figures}))


def one(
    home: Home, stream: StreamSettings, file: Path, rectangles: int
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Seconds of capture, of the run, of CPU; and what came out: fixes, changes, a sum over where they stand."""
    register(home, {"cars": stream}, parse(queries(rectangles)), owner="bench")
    begun_s, begun_cpu_s = time.monotonic(), time.process_time()
    replay(Log(home.log("cars")), file, stream)
    captured_s = time.monotonic()
    done = run(home, stream, until_idle=True)
    ended_s, cpu_s = time.monotonic(), time.process_time() - begun_cpu_s
    changes = tables.read(home.table("changes", "cars"))
    positions = tables.read(home.table("positions", "cars"))
    if len(positions) != done.fixes:
        raise SystemExit(f"{len(positions)} of {done.fixes} fixes are archived")
    total = int(changes["position"].to_numpy().sum() % (1 << 60))
    return (captured_s - begun_s, ended_s - captured_s, cpu_s), (
        done.fixes,
        done.changes,
        total,
    )


def small_segments(folder: Path, stream: StreamSettings, codec: str) -> float:
    """CPU of reading and decoding a segment of one fix, us, of so many that lie behind each other."""
    log = bare_log(folder)
    for line in records(SMALL, replace(stream, format="csv", header=False)).splitlines(
        keepends=True
    )[1:]:
        payload = b"id,t,x,y\n" + line.encode()
        read_by = replace(stream, format="csv")
        coded = Encoder(payload, read_by, arrival_us=0) if codec == "packet" else None
        log.append(payload, arrival_us=wall_clock(), coded=coded)
    found = log.segments(0)
    begun_s = time.process_time()
    rows = sum(
        piece.rows for piece in pieces(log, found, replace(stream, format="csv"))
    )
    took_s = time.process_time() - begun_s
    if rows != SMALL:
        raise SystemExit(f"{rows} of {SMALL} rows")
    return round(took_s / SMALL * 1e6, 1)


def records(count: int, stream: StreamSettings) -> str:
    """Objects that jump about at random, 500 fixes a second."""
    rng = np.random.default_rng(3)
    ids, x, y = (
        rng.integers(0, OBJECTS, count),
        rng.random(count) * SIDE,
        rng.random(count) * SIDE,
    )
    seconds = [START_S + at // 500 for at in range(count)]
    iso = stream.time_unit == "iso"
    times = [
        f"{datetime.fromtimestamp(one, UTC):%Y-%m-%dT%H:%M:%SZ}" if iso else one
        for one in seconds
    ]
    rows = zip(ids.tolist(), times, x.tolist(), y.tolist(), strict=True)
    if stream.format == "ndjson":
        names = ("id", "t", "x", "y")
        return "".join(
            json.dumps(dict(zip(names, (f"car{a}", t, b, c), strict=True))) + "\n"
            for a, t, b, c in rows
        )
    return "id,t,x,y\n" + "".join(
        f"car{a},{t},{b:.3f},{c:.3f}\n" for a, t, b, c in rows
    )


def queries(count: int) -> str:
    """Rectangles of one thousandth of the space each."""
    rng, side = np.random.default_rng(5), SIDE * 0.001**0.5
    corners = (rng.random((count, 2)) * (SIDE - side)).tolist()
    return "\n".join(
        f"REGISTER QUERY q{n} AS SELECT * FROM cars INSIDE ({x}, {y}, {x + side}, {y + side});"  # noqa: S608
        for n, (x, y) in enumerate(corners)
    )


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fixes", type=int, default=500_000)
    parser.add_argument("--rectangles", type=int, default=1_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--time", choices=["s", "iso"], default="s")
    parser.add_argument("--format", choices=["csv", "ndjson"], default="csv")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    return parser.parse_args()


if __name__ == "__main__":
    main()
