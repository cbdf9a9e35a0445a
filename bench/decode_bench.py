"""How fast segments are decoded: clean, with 1 % bad records of several kinds, and beside it Arrow's bare readers.

    python bench/decode_bench.py [--rows 140000] [--repeat 7]

Prints JSON: millions of rows and of bytes a second of CPU time, the best of some repetitions, and the share of the
clean rate.
"""

import argparse
import io
import json
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode

COLUMNS = Columns(object="object_id", event_ts="event_ts", x="x", y="y")
CSV = StreamSettings(
    name="bench", format="csv", columns=COLUMNS, time_unit="ms", max_ahead_s=None
)
ISO = StreamSettings(
    name="bench", format="csv", columns=COLUMNS, time_unit="iso", max_ahead_s=None
)
NDJSON = StreamSettings(
    name="bench", format="ndjson", columns=COLUMNS, time_unit="ms", max_ahead_s=None
)
HEADER = "object_id,event_ts,x,y,kind,speed\n"
BAD_SHARE = 0.01


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=140_000)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    rows = csv_rows(args.rows)
    figures = csv_figures(rows, args.repeat) | ndjson_figures(rows, args.repeat)
    about = {
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "machine": platform.machine(),
    }
    print(json.dumps({"rows": args.rows, **about, "figures": figures}, indent=1))


def csv_rows(count: int) -> list[list[str]]:
    """Rows of text, always the same."""
    rng = np.random.default_rng(1)
    ids, x, y = (
        rng.integers(0, 20_000, count),
        rng.uniform(-180, 180, count),
        rng.uniform(-90, 90, count),
    )
    times = 1_700_000_000_000 + np.arange(count) * 7
    return [
        [f"taxi-{i}", str(t), f"{a:.6f}", f"{b:.6f}", "car", str(i % 90)]
        for i, t, a, b in zip(ids, times, x, y, strict=True)
    ]


def csv_figures(rows: list[list[str]], repeat: int) -> dict[str, Any]:
    """The bare reader, clean rows, and one run for each kind of bad record."""
    spoil: dict[str, Callable[[list[str]], str]] = {
        "number": lambda row: ",".join([*row[:2], "n/a", *row[3:]]),
        "time": lambda row: ",".join([row[0], "yesterday", *row[2:]]),
        "out of range": lambda row: ",".join([*row[:3], "91.0", *row[4:]]),
        "ragged": lambda row: ",".join(row[:-1]),
        "NUL": lambda row: ",".join(row) + "\0",
        "quote": lambda row: '"' + ",".join(row),
        "blank line": lambda row: "\n" + ",".join(row),
    }
    clean = HEADER + "".join(",".join(row) + "\n" for row in rows)
    figures = {"csv, bare Arrow": rate(clean, len(rows), repeat, bare_csv)}
    figures["csv, clean"] = rate(
        clean, len(rows), repeat, lambda data: decode(data, CSV, arrival_us=0)
    )
    for kind, bad in spoil.items():
        text = HEADER + "".join(line + "\n" for line in spoiled(rows, ",".join, bad))
        figures[f"csv, 1 % {kind}"] = rate(
            text, len(rows), repeat, lambda data: decode(data, CSV, arrival_us=0)
        )
    quoted = HEADER + "".join(
        ",".join(f'"{value}"' for value in row) + "\n" for row in rows
    )
    figures["csv, all quoted"] = rate(
        quoted, len(rows), repeat, lambda data: decode(data, CSV, arrival_us=0)
    )
    iso = HEADER + "".join(
        ",".join([row[0], iso_time(row[1]), *row[2:]]) + "\n" for row in rows
    )
    figures["csv, ISO times"] = rate(
        iso, len(rows), repeat, lambda data: decode(data, ISO, arrival_us=0)
    )
    return with_ratios(figures, "csv, clean")


def ndjson_figures(rows: list[list[str]], repeat: int) -> dict[str, Any]:
    """The bare reader, clean rows, and cut or odd records."""
    spoil: dict[str, Callable[[list[str]], str]] = {
        "cut": lambda row: as_json(row)[:-9],
        "number": lambda row: as_json([*row[:2], '"n/a"', *row[3:]]),
        "no object": json.dumps,
    }
    clean = "".join(as_json(row) + "\n" for row in rows)
    figures = {
        "ndjson, bare Arrow": rate(clean, len(rows), repeat, bare_ndjson),
        "ndjson, clean": rate(
            clean, len(rows), repeat, lambda data: decode(data, NDJSON, arrival_us=0)
        ),
    }
    for kind, bad in spoil.items():
        text = "".join(line + "\n" for line in spoiled(rows, as_json, bad))
        figures[f"ndjson, 1 % {kind}"] = rate(
            text, len(rows), repeat, lambda data: decode(data, NDJSON, arrival_us=0)
        )
    return with_ratios(figures, "ndjson, clean")


def bare_csv(data: bytes) -> object:
    """What Arrow alone makes of the same bytes."""
    return arrow_csv.read_csv(
        io.BytesIO(data), read_options=arrow_csv.ReadOptions(use_threads=False)
    )


def bare_ndjson(data: bytes) -> object:
    """What Arrow alone makes of the same bytes."""
    return arrow_json.read_json(
        io.BytesIO(data), read_options=arrow_json.ReadOptions(use_threads=False)
    )


def as_json(row: list[str]) -> str:
    """A row as a JSON object."""
    names = HEADER.strip().split(",")
    texts = [f'"{row[0]}"', *row[1:4], f'"{row[4]}"', row[5]]
    return (
        "{"
        + ",".join(f'"{name}":{text}' for name, text in zip(names, texts, strict=True))
        + "}"
    )


def iso_time(millis: str) -> str:
    """Milliseconds as ISO 8601."""
    return f"{np.datetime64(int(millis), 'ms')}Z"


def spoiled(
    rows: list[list[str]],
    good: Callable[[list[str]], str],
    bad: Callable[[list[str]], str],
) -> list[str]:
    """The lines of rows, of which a seeded 1 % are made by `bad`."""
    chosen = np.random.default_rng(2).random(len(rows)) < BAD_SHARE
    return [
        bad(row) if choose else good(row)
        for row, choose in zip(rows, chosen, strict=True)
    ]


def rate(
    text: str, rows: int, repeat: int, run: Callable[[bytes], object]
) -> dict[str, float]:
    """Millions of rows and of bytes a second of CPU time, in the best repetition."""
    data, times = text.encode(), []
    for _ in range(repeat):
        start = time.process_time()
        run(data)
        times.append(time.process_time() - start)
    best = min(times)
    return {
        "million_rows_per_s": round(rows / best / 1e6, 2),
        "mb_per_s": round(len(data) / best / 1e6, 1),
    }


def with_ratios(figures: dict[str, dict[str, float]], clean: str) -> dict[str, Any]:
    """Each figure with its share of the clean rate."""
    rows = figures[clean]["million_rows_per_s"]
    return {
        name: {**figure, "of_clean": round(figure["million_rows_per_s"] / rows, 2)}
        for name, figure in figures.items()
    }


if __name__ == "__main__":
    main()
