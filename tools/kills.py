"""Kills (-9) what is at work, by a seed, and counts what is there in the end.

usage: kills.py [--of mqtt|kafka|reshard|spread|backtest] [--kills N] [--seed N] [--lazy]

mqtt, kafka: captures and their broker in turns; who lost what was acknowledged, and what is stored twice. --lazy: a
Mosquitto that writes what it holds once a minute. The others are commands, killed at a step or a moment.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.kit import command_kills, kafka_kills, mqtt_kills

_LAZY = "persistence true\nautosave_interval 60"
_COMMANDS = {
    "reshard": command_kills.resharded,
    "spread": command_kills.spread,
    "backtest": command_kills.backtested,
}


def main(arguments: list[str]) -> int:
    """Gives back 1 when something is lost, twice or wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--of", choices=("mqtt", "kafka", *_COMMANDS), default="mqtt", dest="kind"
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument("--lazy", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args(arguments)
    folder = args.folder or Path(tempfile.mkdtemp(prefix=f"fairway-{args.kind}-"))
    print(f"seed {args.seed}, in {folder}", flush=True)
    if args.kind == "mqtt":
        return _mqtt(folder, args)
    if args.kind == "kafka":
        return _kafka(folder, args)
    try:
        out = _COMMANDS[args.kind](folder, kills=args.kills, seed=args.seed)
    except (command_kills.BrokenError, AssertionError) as error:
        print(f"BROKE {error}")
        return 1
    print(f"{out.kills} kills: {out.counted:,} rows counted, all as they should be")
    return 0


def _mqtt(folder: Path, args: argparse.Namespace) -> int:
    os.environ["BROKER_TOKEN"] = "secret"  # noqa: S105 - of a broker on this machine, for a minute
    settings = _LAZY if args.lazy else mqtt_kills.DURABLE
    out = mqtt_kills.lived(folder, kills=args.kills, seed=args.seed, settings=settings)
    print(
        f"{out.kills} kills: {len(out.acknowledged):,} messages acknowledged by the broker, "
        f"{len(out.stored):,} stored\n"
        f"lost by the capture: {sorted(out.lost_by_the_capture)[:20]} ({len(out.lost_by_the_capture)})\n"
        f"lost by the broker: {sorted(out.lost_by_the_broker)[:20]} ({len(out.lost_by_the_broker)})"
    )
    return 1 if out.lost_by_the_capture else 0


def _kafka(folder: Path, args: argparse.Namespace) -> int:
    out = kafka_kills.lived(folder, kills=args.kills, seed=args.seed)
    print(
        f"{out.kills} kills: {len(out.acknowledged):,} messages acknowledged by the broker, "
        f"{len(out.stored):,} stored\n"
        f"lost: {sorted(out.lost)[:20]} ({len(out.lost)})\n"
        f"twice: {sorted(out.doubled)[:20]} ({len(out.doubled)})"
    )
    return 1 if out.lost or out.doubled else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
