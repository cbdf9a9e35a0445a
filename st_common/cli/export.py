"""Rows with places for people, for programs and for maps: on standard output, or into a file."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal, cast

import typer

from st_common.cli.output import Format, shown, write
from st_common.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

ExportFormat = Literal["table", "jsonl", "csv", "geojson", "parquet", "geoparquet"]
ExportForm = Annotated[
    ExportFormat,
    typer.Option(
        "--format",
        help="A table for people, JSON lines or CSV for programs; GeoJSON, Parquet, GeoParquet with places.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write to this file, in place of standard output.",
        show_default=False,
    ),
]
_BINARY = ("parquet", "geoparquet")


def has_places(form: ExportFormat) -> bool:
    """Whether a form says where each row is."""
    return form in ("geojson", *_BINARY)


def export(
    rows: "pa.Table",
    form: ExportFormat,
    out: Path | None,
    *,
    epsg: Callable[[], int] = lambda: 0,
    is_whole: bool = False,
) -> None:
    """Writes rows; says on standard error how many of an export have no place.

    Args:
        rows: with `x` and `y` where the form has places.
        form: how.
        out: the file; None: standard output.
        epsg: what coordinates mean, asked where the form has places.
        is_whole: whether people see columns in which nothing stands, too.

    Raises:
        ConfigError: a terminal cannot show the form, coordinates have no place on Earth, the file cannot be written.
    """
    if not has_places(form):
        with _text_out(out):
            text_form = cast("Format", form)
            write(rows if is_whole else shown(rows, text_form), text_form)
        return
    from st_common.answers.exports import (
        require_on_earth,
        write_geojson,
        write_geoparquet,
        write_parquet,
    )

    number = epsg()
    if form == "geojson":
        require_on_earth(number)
    with _bytes_out(out, form) as file:
        if form == "geojson":
            write_geojson(rows, file, epsg=number)
        elif form == "geoparquet":
            write_geoparquet(rows, file, epsg=number)
        else:
            write_parquet(rows, file)
    nowhere = rows["x"].null_count
    if nowhere:
        typer.echo(f"note: {nowhere:,} of {len(rows):,} rows have no place", err=True)


@contextmanager
def _text_out(out: Path | None) -> Iterator[None]:
    """What is printed goes into a file while the body runs, where there is one."""
    if out is None:
        yield
        return
    _try(out)
    with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
        yield


@contextmanager
def _bytes_out(out: Path | None, form: str) -> Iterator[IO[bytes]]:
    if out is not None:
        _try(out)
        with out.open("wb") as file:
            yield file
    elif form in _BINARY and sys.stdout.isatty():
        raise ConfigError(f"a terminal cannot show {form}", hint="--out FILE")
    else:
        yield sys.stdout.buffer


def _try(out: Path) -> None:
    """Raises where a file cannot be written."""
    try:
        out.touch()
    except OSError as error:
        hint = "name a file in a folder that is there"
        raise ConfigError(f"--out {out}: {error.strerror}", hint=hint) from None
