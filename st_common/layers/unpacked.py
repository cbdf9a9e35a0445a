"""Layer files out of archives: unpacked into a folder of their own for as long as they are read."""

import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from st_common.decode.gzipped import GzipSource, require_no_bomb
from st_common.errors import ConfigError, LayerError

KMZ = ".kmz"
STOPS = "stops.txt"
"""What a feed of GTFS is read for where nobody says what."""
_OF_GTFS = (STOPS, "shapes.txt")  # its other text files have no places
_MAIN = "doc.kml"  # what a .kmz is about; other files belong to it
_PIECE = 1 << 20
_BROKEN = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)


@contextmanager
def unpacked(
    file: Path, suffixes: Collection[str], *, table: str | None = None
) -> Iterator[Path]:
    """The file to read: the one in a zip archive, or what a gzip file holds; any other file itself.

        parks.zip of parks.shp, parks.dbf, parks.shx, parks.prj   ->   .../parks.shp
        parks.gpkg.gz                                             ->   .../parks.gpkg
        yard.kmz of doc.kml and pictures                          ->   .../doc.kml

    Args:
        file: the file.
        suffixes: of the files that can be read, in small letters.
        table: which file of an archive of several, by its name up to the first dot; of an archive of one file it may
            name a table inside that.

    Raises:
        LayerError: an archive is broken, or has no such file, or several and none is named.
    """
    name = file.name.lower()
    is_zip, is_gzip = name.endswith((".zip", KMZ)), name.endswith(".gz")
    if not (is_zip or is_gzip):
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="fairway-layer-") as folder:
        try:
            if is_zip:
                inner = _of_zip(file, Path(folder), suffixes, table)
            else:
                inner = Path(folder) / file.name[: -len(".gz")]
                with file.open("rb") as packed, inner.open("wb") as out:
                    unpack_gzip(packed, out, file)
        except _BROKEN as error:
            why = getattr(error, "strerror", None) or error
            raise LayerError(f"{file} cannot be unpacked: {why}") from None
        yield inner


def unpack_gzip(packed: IO[bytes], out: IO[bytes], file: Path) -> None:
    """Unpacks gzip.

    Args:
        packed: the packed bytes.
        out: where what they hold goes.
        file: what they are called.

    Raises:
        LayerError: they are broken, or hold much more than features do.
    """
    source = GzipSource(packed, str(file))
    try:
        while piece := source.read(_PIECE):
            out.write(piece)
    except ConfigError as error:
        raise LayerError(error.message, hint=error.hint) from None
    if source.broken:
        raise LayerError(f"{file} cannot be unpacked: it is broken, or not complete")


def _of_zip(
    file: Path, folder: Path, suffixes: Collection[str], table: str | None
) -> Path:
    with zipfile.ZipFile(file) as archive:
        unpacked_size = sum(info.file_size for info in archive.infolist())
        try:
            require_no_bomb(str(file), file.stat().st_size, unpacked_size)
        except ConfigError as error:
            raise LayerError(error.message, hint=error.hint) from None
        archive.extractall(folder)  # members cannot leave the folder
    inner = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name.lower().endswith(tuple(suffixes))
    )
    if not inner:
        raise LayerError(
            f"{file} holds no layer file", hint=f"known are {', '.join(suffixes)}"
        )
    texts = [path for path in inner if path.suffix.lower() == ".txt"]
    if any(path.name in _OF_GTFS for path in texts):
        inner = [path for path in inner if path not in texts or path.name in _OF_GTFS]
    if table is None and folder / STOPS in inner:
        return folder / STOPS
    if file.name.lower().endswith(KMZ) and (folder / _MAIN) in inner:
        return folder / _MAIN
    named = [path for path in inner if path.name.partition(".")[0] == table]
    if len(inner) > 1 and len(named) != 1:
        names = ", ".join(path.name for path in inner)
        raise LayerError(
            f"{file} holds several layer files: {names}",
            hint="--table says which one, by its name up to the dot",
        )
    return inner[0] if len(inner) == 1 else named[0]
