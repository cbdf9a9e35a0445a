"""Files that are known and that no stream reads, each with the command that makes fixes of it."""

import re
from collections.abc import Sequence
from pathlib import Path

from st_common.errors import ConfigError

_HEAD_BYTES = 1 << 12
_BABEL = "gpsbabel -t -i {kind} -f {file} -o gpx -F {stem}.gpx"
_EXCEL = "python -c \"import pandas; pandas.read_excel('{file}').to_csv('{stem}.csv', index=False)\""
_ARROW = (
    'python -c "import pyarrow.{module} as m, pyarrow.parquet as p; '
    "p.write_table(m.read_table('{file}'), '{stem}.parquet')\""
)
_NETCDF = "python -c \"import xarray; xarray.open_dataset('{file}').to_dataframe().to_csv('{stem}.csv')\""
_OGR = "ogr2ogr -f GeoJSON {stem}.geojson {file}"
_AVRO = "duckdb -c \"INSTALL avro; LOAD avro; COPY (FROM read_avro('{file}')) TO '{stem}.parquet'\""
_KNOWN: Sequence[tuple[bytes, str, str]] = (
    (rb"(?s)PK\x03\x04.{0,3000}(\[Content_Types\]\.xml|_rels/)", "a workbook of Excel", _EXCEL),
    (rb"(?s)PK\x03\x04.{20,60}mimetypeapplication/vnd\.oasis", "a workbook of OpenDocument", _EXCEL),
    (rb"\xd0\xcf\x11\xe0", "a workbook of an old Excel", _EXCEL),
    (rb"ARROW1|FEA1", "Feather (Arrow IPC)", _ARROW.replace("{module}", "feather")),
    (rb"(?s).{8}\.FIT", "FIT, of a sports watch", _BABEL.replace("{kind}", "garmin_fit")),
    (rb"(?s).{0,600}<TrainingCenterDatabase", "TCX, of a sports watch", _BABEL.replace("{kind}", "gtrnctr")),
    (rb"(?s).{0,600}<kml", "KML", f"of its tracks: {_BABEL.replace('{kind}', 'kml')}; fairway layer load takes layers"),
    (rb"(?is)\s*<(!doctype )?html", "a page of HTML, an error of a server maybe", "open it in a browser"),
    (rb"SQLite format 3\0", "SQLite or GeoPackage", _OGR),
    (rb"\0\0\x27\x0a", "a Shapefile", _OGR),
    (rb"fgb", "FlatGeobuf", _OGR),
    (rb"\x89HDF|CDF[\x01\x02\x05]", "HDF5 or NetCDF", _NETCDF),
    (rb"Obj\x01", "Avro", _AVRO),
    (rb"ORC", "ORC", _ARROW.replace("{module}", "orc")),
    (rb"%PDF", "PDF", "ask who sent it for the table itself"),
    (rb"BZh[1-9]", "packed by bzip2", "bzip2 -dk {file}"),
    (rb"\xfd7zXZ\0", "packed by xz", "xz -dk {file}"),
    (rb"\x28\xb5\x2f\xfd", "packed by zstd", "zstd -dk {file}"),
    (rb"7z\xbc\xaf", "packed by 7-Zip", "7z x {file}"),
    (rb"(?s).{257}ustar", "a tar archive", "tar -xf {file}"),
)  # fmt: skip
_LINES_OF_POINTS = re.compile(r"\s*\[\s*\[\s*-?\d+(\.\d+)?\s*,\s*-?\d+(\.\d+)?\s*[\],]")
_ENCODED = re.compile(r"[?-~\\]{8,}")


def refuse_known(path: Path) -> None:
    """Refuses a file that no stream reads, by what it is.

    Raises:
        ConfigError: it is such a file; the hint has the command that makes fixes of it.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return  # who reads it says why it cannot be read
    for magic, what, command in _KNOWN:
        if re.match(magic, head):
            shown = command.format(file=path, stem=path.with_suffix(""))
            raise ConfigError(f"{path} is {what}: no stream reads that", hint=shown)


def refuse_lines_of_points(
    names: Sequence[str], rows: Sequence[dict[str, str]], place: str
) -> None:
    """Refuses trips whose points stand in one column.

    Raises:
        ConfigError: they do; the hint says how each point becomes a record.
    """
    for name in names:
        values = [one for row in rows if (one := row.get(name, ""))]
        if not values:
            continue
        if all(map(_LINES_OF_POINTS.match, values)):
            many = f"json.loads(r['{name}'])"
        elif "polyline" in name.lower() and all(map(_ENCODED.fullmatch, values)):
            many = f"[(x, y) for y, x in polyline.decode(r['{name}'])]"
        else:
            continue
        raise ConfigError(
            f"{place}: {name} holds the points of a whole trip, and a record is one fix",
            hint="write each point as a line, with the seconds between points (15 here): python -c "
            "\"import csv, json, sys; w = csv.writer(sys.stdout); w.writerow(['id', 'time', 'lon', 'lat']); "
            f"[w.writerow([r[ID], int(r[TIME]) + 15 * n, *p]) for r in csv.DictReader(open('FILE')) for n, p in "
            f'enumerate({many})]"',
        )
