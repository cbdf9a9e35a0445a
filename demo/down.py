"""`make down`: ends what `make up` started, to the last process; what it keeps stays in `demo/up`."""

import sys

from pipeline import stop
from rich.console import Console
from up import AIRFLOW, HERE, HOME

from tests.kit.local_airflow.services import left_of, stop_services
from tests.kit.local_airflow.setup import read_setup


def main() -> int:
    """Asks streams and services to end, kills what does not; 1 when something lives all the same."""
    console = Console(soft_wrap=True, highlight=False)
    setup = read_setup(AIRFLOW)
    if setup is None:
        console.print(f"nothing was started in {HERE}")
        return 0
    with console.status("streams and Airflow end"):
        stop(HOME)
        killed = stop_services(setup)
    rest = list(left_of(setup))
    if rest:
        console.print(f"[red]error:[/] these still run: {[one.pid for one in rest]}")
        return 1
    console.print(f"ended ({killed} processes had to be killed)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
