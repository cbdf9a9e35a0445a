"""`make demo ARGS=page`: the live page over the home that `make demo` left, its vehicles driving on, until Ctrl-C."""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from airflow_runs import DemoError
from pipeline import BIN, MARKER
from rich.console import Console

from st_common.loopback import SERVE_PORT

HERE = Path(__file__).resolve().parent
HOME = HERE / "home"
SPEED = 1.0
SPEED_HELP = "how many times as fast as they do the vehicles drive on beside the page; 0: they stand still"


def is_watched() -> bool:
    """Whether somebody sits in front of a terminal, who can end what goes on."""
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return in_terminal and not os.environ.get("CI")


def serve(console: Console, home: Path, port: int | None, speed: float) -> NoReturn:
    """Becomes the server of the page over a demo's home, beside which the vehicles drive on, until Ctrl-C.

    Args:
        console: what it says goes there.
        home: the home folder.
        port: on 127.0.0.1, 0 for any. None: the usual one, or any where somebody has that.
        speed: how many times as fast as they do the vehicles drive; 0: they stand still.

    Raises:
        DemoError: there is no such home.
    """
    if not (home / MARKER).exists():
        raise DemoError(f"there is no demo in {home}: run make demo first")
    wanted = _free_port() if port is None else port
    argv = [str(BIN / "fairway"), "--home", str(home), "serve", "--port", str(wanted)]
    console.print("The live page over demo/home, until Ctrl-C:")
    sys.stdout.flush()
    if speed > 0:
        # It ends by itself once this process, which becomes the server, is no more, however that ends.
        traffic = [sys.executable, str(HERE / "traffic.py"), str(home)]
        subprocess.Popen([*traffic, "--speed", str(speed)], stdin=subprocess.DEVNULL)
    os.execv(argv[0], argv)  # noqa: S606 - what ends this process ends the server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", SERVE_PORT))
        except OSError:
            return 0
    return SERVE_PORT


def main() -> int:
    """Becomes the server; 2 where there is nothing to serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--port", type=int, default=None)
    parser.add_argument("--speed", type=float, default=SPEED, help=SPEED_HELP)
    given = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    try:
        serve(console, given.home, given.port, given.speed)
    except DemoError as error:
        console.print(f"[red]error:[/] {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
