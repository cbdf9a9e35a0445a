"""Points to partition by: from the logs of streams and from CSV files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.log.segment import runs_of
from st_common.partitioning.middles import middles
from st_common.partitioning.sample import Floats, PointSource, known

_READ_BYTES = 64 << 20  # of a log at once
_PART_BYTES = 16 << 20  # of a log, for a task


def log_points(
    home: Home, streams: Sequence[StreamSettings], dimensions: int = 2
) -> PointSource:
    """The middles of all elements in the logs of some streams, stream by stream, each in the order of its log.

    Args:
        home: the home folder.
        streams: whose logs are read, each time anew.
        dimensions: that all of them have. Elements that lack a coordinate are left out.
    """
    names = ", ".join(repr(stream.name) for stream in streams)
    name = f"stream {names}"

    def read() -> Iterator[Floats]:
        for stream in streams:
            log = Log(home.log(stream.name))
            yield from _log_points(log, stream, dimensions, 0, log.end())

    def part(stream: StreamSettings, start: int, end: int) -> PointSource:
        log = home.log(stream.name)
        return PointSource(
            name=name,
            dimensions=dimensions,
            read=lambda: _log_points(Log(log), stream, dimensions, start, end),
        )

    def divided() -> list[PointSource]:
        return [
            part(stream, start, end)
            for stream in streams
            for start, end in _runs(Log(home.log(stream.name)))
        ]

    return PointSource(name=name, dimensions=dimensions, read=read, divided=divided)


def _runs(log: Log) -> list[tuple[int, int]]:
    return runs_of(log.segments(0, end=log.end()), _PART_BYTES)


def csv_points(file: Path, *, x: str = "x", y: str = "y") -> PointSource:
    """The points of a CSV file with a header, in the order of the file.

    Rows whose coordinates are no numbers are left out, and counted.

    Args:
        file: the file.
        x: the column with the first coordinate.
        y: the column with the second one.

    Returns:
        A source; it raises ConfigError when the file cannot be read, or has no such columns.
    """
    bad = [0, 0]  # how many, and the first of them

    def read() -> Iterator[Floats]:
        before, bad[:] = 0, [0, 0]
        options = csv.ConvertOptions(
            include_columns=[x, y], column_types={x: pa.string(), y: pa.string()}
        )
        try:
            for batch in csv.open_csv(file, convert_options=options):
                points = np.column_stack(
                    [_numbers(batch.column(axis)) for axis in (0, 1)]
                )
                wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
                if len(wrong) and not bad[0]:
                    bad[1] = before + int(wrong[0]) + 1
                bad[0] += len(wrong)
                before += len(points)
                yield known(points)
        except (OSError, KeyError, pa.ArrowInvalid, pa.ArrowKeyError) as error:
            message = " ".join(str(error).split())
            raise ConfigError(
                f"{file} cannot be read: {message}",
                hint=f"a CSV with columns {x} and {y}?",
            ) from None

    def left_out() -> list[str]:
        rows = (
            f"{bad[0]:,} rows of {file} have" if bad[0] > 1 else f"1 row of {file} has"
        )
        first = f"the first is row {bad[1]:,}"
        told = f"rejected: {rows} no numbers in {x} and {y}: {first}"
        return [told] if bad[0] else []

    return PointSource(name=str(file), dimensions=2, read=read, left_out=left_out)


def _log_points(
    log: Log, stream: StreamSettings, dimensions: int, start: int, end: int
) -> Iterator[Floats]:
    """The middles of the elements in some segments."""
    while start < end:
        segments = log.segments(start, max_bytes=_READ_BYTES, end=end)
        for piece in pieces(log, segments, stream):
            if piece.part is not None:
                fixes = piece.part.decoded.fixes
                yield known(middles(fixes, piece.stream.columns, dimensions))
        start = segments[-1].number + 1


_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


def _numbers(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numeric = pc.match_substring_regex(texts, _NUMBER)
    clean = pc.utf8_trim_whitespace(
        pc.if_else(numeric, texts, pa.scalar(None, pa.string()))
    )
    clean = pc.replace_substring_regex(clean, r"^\+", "")
    return np.asarray(
        pc.cast(clean, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64
    )
