"""`make demo ARGS=page`: the live page over the home that `make demo` left, until Ctrl-C."""

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from airflow_runs import DemoError
from pipeline import BIN, MARKER
from rich.console import Console

from st_common.loopback import SERVE_PORT

HOME = Path(__file__).resolve().parent / "home"


def is_watched() -> bool:
    """Whether somebody sits in front of a terminal, who can end what goes on."""
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return in_terminal and not os.environ.get("CI")


def serve(console: Console, home: Path, port: int | None) -> NoReturn:
    """Becomes the server of the page over a demo's home, until Ctrl-C.

    Args:
        console: what it says goes there.
        home: the home folder.
        port: on 127.0.0.1, 0 for any. None: the usual one, or any where somebody has that.

    Raises:
        DemoError: there is no such home.
    """
    if not (home / MARKER).exists():
        raise DemoError(f"there is no demo in {home}: run make demo first")
    wanted = _free_port() if port is None else port
    argv = [str(BIN / "fairway"), "--home", str(home), "serve", "--port", str(wanted)]
    console.print("The live page over demo/home, until Ctrl-C:")
    sys.stdout.flush()
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
    given = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    try:
        serve(console, given.home, given.port)
    except DemoError as error:
        console.print(f"[red]error:[/] {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
