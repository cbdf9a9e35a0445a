"""Files that are known and that no stream reads, each with the command that makes fixes of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from st_common.detect.words import TIMES, axis_of, rank
from st_common.errors import ConfigError

_HEAD_BYTES = 1 << 12
_BABEL = "gpsbabel -t -i {kind} -f {file} -o gpx -F {stem}.gpx"
_EXCEL = "python -c \"import pandas; pandas.read_excel('{file}').to_csv('{stem}.csv', index=False)\""
_ARROW = (
    'python -c "import pyarrow.{module} as m, pyarrow.parquet as p; '
    "p.write_table(m.read_table('{file}'), '{stem}.parquet')\""
)
_STREAM = (
    'python -c "import pyarrow as a, pyarrow.parquet as p; '
    "p.write_table(a.ipc.open_stream('{file}').read_all(), '{stem}.parquet')\""
)
_NETCDF = "python -c \"import xarray; xarray.open_dataset('{file}').to_dataframe().to_csv('{stem}.csv')\""
_OGR = "ogr2ogr -f GeoJSON {stem}.geojson {file}"
_AVRO = "duckdb -c \"INSTALL avro; LOAD avro; COPY (FROM read_avro('{file}')) TO '{stem}.parquet'\""
_KNOWN: Sequence[tuple[bytes, str, str]] = (
    (rb"(?s)PK\x03\x04.{0,3000}(\[Content_Types\]\.xml|_rels/)", "a workbook of Excel", _EXCEL),
    (rb"(?s)PK\x03\x04.{20,60}mimetypeapplication/vnd\.oasis", "a workbook of OpenDocument", _EXCEL),
    (rb"\xd0\xcf\x11\xe0", "a workbook of an old Excel", _EXCEL),
    (rb"ARROW1|FEA1", "Feather (Arrow IPC)", _ARROW.replace("{module}", "feather")),
    (rb"(?s)\xff\xff\xff\xff..\0\0", "a stream of Arrow", _STREAM),
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


def refuse_tables_of_json(text: bytes, place: str) -> None:
    """Refuses a JSON document that is a table: objects by their ids, or lists by the names of columns.

    Raises:
        ConfigError: it is; the hint has the command that makes a record of each.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict) or len(value) < 2:
        return
    inside = list(value.values())
    if all(isinstance(one, dict) for one in inside):
        common = set(inside[0]).intersection(*inside[1:])
        axes = {axis[0] for name in common if (axis := axis_of(name)) is not None}
        if axes != {"x", "y"}:
            return
        what, rows = "objects by their names", "[{'id': k, **v} for k, v in d.items()]"
    elif isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        what, rows = (
            "lists of values",
            "[dict(zip(d['columns'], r)) for r in d['data']]",
        )
    elif all(map(_is_column, inside)) and len({len(one) for one in inside}) == 1:
        what, rows = "lists by columns", "[dict(zip(d, r)) for r in zip(*d.values())]"
    else:
        return
    target = Path(place).with_suffix(".ndjson").name
    raise ConfigError(
        f"{place} holds {what}, and no list of records",
        hint=f"python -c \"import json; d = json.load(open('{place}')); "
        f"open('{target}', 'w').writelines(json.dumps(r) + '\\n' for r in {rows})\"",
    )


def refuse_lists_of_points(
    payloads: Sequence[bytes], times: Mapping[str, Any], place: str
) -> None:
    """Refuses records of JSON each of which holds a list of points, as of a trip.

    Args:
        payloads: records, each on a line.
        times: what is known of the columns of a fix, by the keys of the settings: `object`, `event_ts`, `time_unit`.
        place: of what, for people.

    Raises:
        ConfigError: they do; the hint says how each point becomes a record.
    """
    for record in islice(_objects(payloads), _LOOKED_AT):
        for path, points in _lists_in(record):
            if (one := _point(points)) is None:
                continue
            steps = "".join(f"[{name!r}]" for name in path)
            raise ConfigError(
                f"{place}: {'.'.join(path)} holds the points of a whole trip, and a record is one fix",
                hint="write each point as a line"
                f"{'' if one.time else ', with the seconds between points (15 here)'}: "
                + _command(f"r{steps}", one, times, place),
            )


def _is_column(value: Any) -> bool:
    """Whether a value is a list of plain values."""
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and not any(isinstance(one, dict | list) for one in value)


_LOOKED_AT = 20
_READ = {
    "s": "float({})",
    "ms": "float({}) / 1000",
    "us": "float({}) / 1e6",
    "iso": "datetime.datetime.fromisoformat({}).timestamp()",
}


class _PointOfList:
    """How a point of a list says where it is: as Python has it, of `p`, and when, if it says so."""

    def __init__(self, x: str, y: str, time: str = "") -> None:
        self.x, self.y, self.time = x, y, time


def _point(points: list[Any]) -> _PointOfList | None:
    """How the points of a list are written; None: they are no points."""
    if len(points) < 2:
        return None
    first, second = points[:2]
    if isinstance(first, list) and isinstance(second, list):
        both = [*first[:2], *second[:2]]
        are_numbers = len(both) == 4 and all(
            isinstance(one, int | float) and abs(one) <= 180 for one in both
        )
        return _PointOfList("p[0]", "p[1]") if are_numbers else None
    if not isinstance(first, dict):
        return None
    axes = {axis[0]: name for name in first if (axis := axis_of(name)) is not None}
    if axes.keys() != {"x", "y"}:
        return None
    times = [name for name in first if rank(name, TIMES) is not None]
    time = f"p[{times[0]!r}]" if times else ""
    return _PointOfList(f"p[{axes['x']!r}]", f"p[{axes['y']!r}]", time)


def _command(
    points: str, one: _PointOfList, known: Mapping[str, Any], place: str
) -> str:
    """The command that writes the points of records as CSV."""
    name, at = (_in_record(known.get(key)) for key in ("object", "event_ts"))
    start = _READ.get(str(known.get("time_unit")), "float({})").format(at or "r[TIME]")
    time = one.time or f"{start} + 15 * n"
    lines = f"(json.loads(line) for line in open('{place}'))"
    rows = f"json.load(open('{place}'))" if _is_array(place) else lines
    return (
        'python -c "import csv, datetime, json, sys; w = csv.writer(sys.stdout); '
        "w.writerow(['id', 'time', 'lon', 'lat']); "
        f"[w.writerow([{name or 'r[ID]'}, {time}, {one.x}, {one.y}]) for r in {rows} "
        f'for n, p in enumerate({points})]"'
    )


def _in_record(column: Any) -> str:
    """A column of a record as Python has it; "" where there is none."""
    if not isinstance(column, str):
        return ""
    return "r" + "".join(f"[{name!r}]" for name in column.split("."))


def _is_array(place: str) -> bool:
    path = Path(place)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).lstrip().startswith(b"[")


def _objects(payloads: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for line in (line for one in payloads for line in one.splitlines()):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _lists_in(
    record: Mapping[str, Any], before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """The lists in a record, by their paths."""
    for name, value in record.items():
        if isinstance(value, dict) and len(before) < _DEEPEST:
            yield from _lists_in(value, (*before, name))
        elif isinstance(value, list):
            yield (*before, name), value


_DEEPEST = 8
