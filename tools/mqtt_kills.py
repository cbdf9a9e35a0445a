"""Kills captures and an MQTT broker (mosquitto) in turns, and says who lost what was acknowledged.

usage: mqtt_kills.py [--kills N] [--seed N] [--lazy]      (--lazy: a broker that writes what it holds once a minute)
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from st_common.testing.mqtt_kills import DURABLE, lived

_LAZY = "persistence true\nautosave_interval 60"


def main(arguments: list[str]) -> int:
    """Gives back 1 when the capture has lost a message that it acknowledged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument("--lazy", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args(arguments)
    os.environ["BROKER_TOKEN"] = "secret"  # noqa: S105 - of a broker on this machine, for a minute
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fairway-mqtt-"))
    print(f"seed {args.seed}, in {folder}", flush=True)
    settings = _LAZY if args.lazy else DURABLE
    out = lived(folder, kills=args.kills, seed=args.seed, settings=settings)
    print(
        f"{out.kills} kills: {len(out.acknowledged):,} messages acknowledged by the broker, "
        f"{len(out.stored):,} stored\n"
        f"lost by the capture: {sorted(out.lost_by_the_capture)[:20]} ({len(out.lost_by_the_capture)})\n"
        f"lost by the broker: {sorted(out.lost_by_the_broker)[:20]} ({len(out.lost_by_the_broker)})"
    )
    return 1 if out.lost_by_the_capture else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
