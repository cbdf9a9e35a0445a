"""What a registration costs behind many others: CPU seconds of a file of queries, of one more, of one in a new process.

.venv/bin/python -m bench.registrations [QUERIES]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query import known
from st_common.query.registry import register
from st_common.query.text import parse

CARS = StreamSettings(
    name="cars",
    format="csv",
    crs="planar",
    time_unit="s",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
)

_STATEMENT = "REGISTER QUERY q{} AS SELECT * FROM cars INSIDE ({});\n"


def text_of(numbers: range) -> str:
    """Statements that register a square each."""
    boxes = {
        n: f"{n % 100}, {n // 100}, {n % 100 + 1}, {n // 100 + 1}" for n in numbers
    }
    return "".join(_STATEMENT.format(n, box) for n, box in boxes.items())


def cpu_s(what: Callable[[], object]) -> float:
    """The processor time of a call."""
    begun_s = time.process_time()
    what()
    return time.process_time() - begun_s


def main() -> None:
    """Prints the figures."""
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))

        def do(text: str) -> None:
            register(home, {"cars": CARS}, parse(text), owner="bench")

        do(text_of(range(1)))
        parsed_s = cpu_s(lambda: parse(text_of(range(1, queries))))
        whole_s = cpu_s(lambda: do(text_of(range(1, queries))))
        do(text_of(range(queries, queries + 1)))
        more_s = (
            cpu_s(
                lambda: [
                    do(text_of(range(n, n + 1)))
                    for n in range(queries + 1, queries + 301)
                ]
            )
            / 300
        )
        known.forget()  # as in a new process
        new_s = cpu_s(lambda: do(text_of(range(queries + 301, queries + 302))))
    sys.stdout.write(
        f"a file of {queries} queries {whole_s:.2f} s, of which parsing {parsed_s:.2f} s; "
        f"one more {more_s * 1e3:.1f} ms, in a new process {new_s * 1e3:.1f} ms\n"
    )


if __name__ == "__main__":
    main()
