"""The lines of a file of delimited text as columns of texts, and the number of each."""

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.detect.text import Text, text_of
from st_common.errors import ConfigError, LayerError
from st_common.formats.csv_records import line_numbers, names_in, read_csv
from st_common.formats.encodings import UTF8, as_utf8, encoding_seen
from st_common.formats.numbers import is_missing
from st_common.formats.records import Reason
from st_common.replay.source import opened

_AT_ONCE = 1 << 20

Ints = npt.NDArray[np.int64]
HOW = "a layer is a line a feature, with a header and columns of longitude and latitude, or one of WKT"
_SEPARATED_BY = re.compile(rb"sep=(.)\r?\n")  # what spreadsheets put in front
_HEAD = 1 << 22  # bytes that say how a file is written
_LONG = re.compile(r"\([^()\n]{200,}\)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of a file that are taken apart.

    Attributes:
        columns: texts by the names of columns, null for none; one for each line.
        numbers: the number of each line in the file, from 1; of a record of several lines that of the first.
        faults: the numbers of the others, and the reason why they cannot be.
        notes: what was found out about the file.
    """

    columns: Mapping[str, pa.Array]
    numbers: Ints
    faults: Sequence[tuple[int, str]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)


def read_lines(file: Path) -> Lines:
    """The lines of a file; those without any value are left out, which is told.

    Raises:
        LayerError: the file cannot be read, is no delimited text, or has no line but its header.
    """
    data, notes = read_text(file)
    settings, skipped, data = _settings(data, file)
    records = read_csv(data, settings)
    numbers = line_numbers(data, settings) + skipped
    good = records.fault == Reason.NONE
    texts = {
        name: pc.utf8_trim_whitespace(records.fields[name])
        for name in settings.columns.object
        if name in records.fields
    }
    empty = np.ones(int(good.sum()), bool)
    for values in texts.values():
        empty &= is_missing(values)
    bad = np.flatnonzero(~good)
    if empty.all() and not len(bad):
        raise LayerError(f"{file} has no line under its header", hint=HOW)
    if empty.any():
        notes.append(f"lines without any value, left out: {empty.sum()}")
    reasons = [Reason(int(records.fault[row])).name.lower() for row in bad]
    return Lines(
        columns={n: one.filter(pa.array(~empty)) for n, one in texts.items()},
        numbers=numbers[good][~empty],
        faults=list(zip(numbers[bad].tolist(), reasons, strict=True)),
        notes=tuple(notes),
    )


def _settings(data: bytes, file: Path) -> tuple[StreamSettings, int, bytes]:
    """How the file is written, how many lines stand in front of the header, and its bytes from there on."""
    skipped = 0
    if said := _SEPARATED_BY.match(data):
        data, skipped = data[said.end() :], 1
    if not data.strip():
        raise LayerError(f"{file} is empty", hint="a layer has a feature a line")
    # The reader of samples takes fields of 128 KiB at most, and areas have more.
    head = _LONG.sub("(0 0)", data[:_HEAD].decode("utf-8", "replace"))
    try:
        seen = text_of(head, str(file))
    except ConfigError as error:
        raise LayerError(error.message, hint=HOW) from None
    for _ in range(seen.skip_lines):
        data = data.partition(b"\n")[2]
    settings = _as_stream(seen.names, seen)
    if seen.has_header:
        names = names_in(data.partition(b"\n")[0], settings)
        called = tuple(filter(None, dict.fromkeys(names)))
        if not called:
            raise LayerError(f"{file}: its header names no column", hint=HOW)
        settings = _as_stream(called, seen)
    return settings, skipped + seen.skip_lines, data


def _as_stream(names: tuple[str, ...], seen: Text) -> StreamSettings:
    """What the reader of CSV needs: all columns are read, as if together they named an object."""
    return StreamSettings(
        name="layer",
        format="csv",
        columns=Columns(object=names),
        delimiter=seen.delimiter,
        header=seen.has_header,
    )


def read_text(file: Path) -> tuple[bytes, list[str]]:
    """The bytes of a text file in UTF-8, without a byte order mark, and what was found out about them.

    What is no UTF-8 is read as Windows-1252, which is told; UTF-16 as what it is.

    Raises:
        LayerError: the file cannot be read, or is no text.
    """
    try:
        with opened(file) as source:
            parts = iter(lambda: source.source.read(_AT_ONCE), b"")
            data = b"".join(parts).removeprefix(codecs.BOM_UTF8)
    except ConfigError as error:
        raise LayerError(error.message, hint=error.hint) from None
    if b"\0" in data:
        raise LayerError(f"{file} is no text", hint="save it as CSV")
    encoding = encoding_seen(data)
    if encoding == UTF8:
        return data, []
    return as_utf8(data, encoding), [f"the file is no UTF-8: it is read as {encoding}"]
