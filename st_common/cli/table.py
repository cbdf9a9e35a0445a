"""`fairway table`: tables, whose rows are put and deleted one by one while streams run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli import context
from st_common.cli.arguments import Json
from st_common.errors import LayerError

if TYPE_CHECKING:
    from st_common.layers.put import Put
    from st_common.query.table_rows import TableHome

_NAME = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of a table or layer.")
]
_KEY = Annotated[str, typer.Argument(metavar="KEY", help="The key of a row.")]
_KEYS = Annotated[list[str], typer.Argument(metavar="KEY", help="Keys of rows.")]
_BOX = Annotated[
    str,
    typer.Option(
        "--box",
        metavar="MINX,MINY,MAXX,MAXY",
        help="The rectangle, in the table's coordinates.",
    ),
]


def create(
    ctx: typer.Context,
    name: _NAME,
    *,
    key: Annotated[
        str,
        typer.Option("--key", metavar="COLUMN", help="The column that tells rows."),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="COLUMN", help="A further column; repeat it."),
    ] = None,
    versions: Annotated[
        int, typer.Option("--versions", min=1, help="Versions of a row that stay.")
    ] = 1,
    ttl: Annotated[
        str | None,
        typer.Option(
            "--ttl", metavar="TIME", help="How long a row stays, such as '7 days'."
        ),
    ] = None,
    group: Annotated[
        str, typer.Option("--group", help="By whose regions it is spread.")
    ] = "default",
) -> None:
    """Create a table, as CREATE TABLE does."""
    from st_common.layers.declared import create_table
    from st_common.layers.table_settings import TableSettings
    from st_common.query.lowering.table import seconds_in

    settings = TableSettings(
        key=key,
        columns=[key, *(column or ())],
        versions=versions,
        ttl_s=None if ttl is None else seconds_in(ttl),
        group=group,
    )
    create_table(context.home(ctx), name, settings)
    typer.echo(f"created table {name}, key {key}")


def drop(ctx: typer.Context, name: _NAME) -> None:
    """Drop a table or layer that no query joins, as DROP TABLE does."""
    from st_common.query.registry import carry_out
    from st_common.query.text import parse

    home = context.home(ctx, must_exist=True)
    text = parse(f'DROP TABLE "{name.replace(chr(34), "")}"')
    carry_out(home, context.streams(ctx), text, owner="")
    typer.echo(f"dropped table {name}")


def put(
    ctx: typer.Context,
    name: _NAME,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="COLUMN=VALUE", help="What stands in the row."),
    ] = None,
    *,
    fid: Annotated[
        str | None,
        typer.Option("--id", metavar="KEY", help="The id, in a layer without a key."),
    ] = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            "--geometry", metavar="SHAPE", help="Where it is: well-known text."
        ),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option("--row", metavar="JSON", help="All of it: a feature of GeoJSON."),
    ] = None,
) -> None:
    """Put a row into a table or layer, over the one of the same key: running queries tell what that changes."""
    feature = _feature(values or [], fid, geometry) if row is None else _parsed(row)
    _tell("put", _tables(ctx).put(name, [feature]))


def delete(ctx: typer.Context, name: _NAME, keys: _KEYS) -> None:
    """Delete rows by their keys."""
    _tell("deleted", _tables(ctx).delete(name, keys))


def load(
    ctx: typer.Context,
    name: _NAME,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that layers are loaded from.")
    ],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="All rows that are not in it go.")
    ] = False,
) -> None:
    """Put all rows of a file, in one commit."""
    from st_common.layers.faults import SHOWN
    from st_common.layers.faults import told as lines_of

    done, features = _tables(ctx).load(name, file, replaces=replace)
    for note in features.notes:
        typer.echo(f"note: {note}", err=True)
    for line in lines_of(features.faults, most=SHOWN):
        typer.echo(line, err=True)
    _tell("put", done)


def get(ctx: typer.Context, name: _NAME, key: _KEY) -> None:
    """Show the row of a key as GeoJSON, then its older versions."""
    from st_common.layers.find import get as rows_of

    rows = rows_of(context.home(ctx, must_exist=True), name, key)
    if not rows:
        raise LayerError(f"table {name!r} has no row {key!r}")
    _write(rows)


def rect(ctx: typer.Context, name: _NAME, *, box: _BOX) -> None:
    """Show the rows in a rectangle as GeoJSON, and say how many files were read."""
    from st_common.layers.find import in_rectangle

    home = context.home(ctx, must_exist=True)
    found = in_rectangle(home, name, _box(box)).to_json()
    _write(found["features"])
    _tell_files(found)


def join(ctx: typer.Context, left: _NAME, right: _NAME, *, box: _BOX) -> None:
    """Show the pairs of rows of two tables that meet in a rectangle, and say how many files were read."""
    from st_common.layers.find import join_in_rectangle

    home = context.home(ctx, must_exist=True)
    found = join_in_rectangle(home, left, right, _box(box)).to_json()
    _write([{"left": one, "right": other} for one, other in found["pairs"]])
    _tell_files(found)


def list_tables(ctx: typer.Context, *, json_lines: Json = False) -> None:
    """List the tables and layers: their rows, key and columns, and how long rows stay."""
    from st_common.cli.statements import write_tables

    write_tables(context.home(ctx, must_exist=True), json_lines=json_lines)


def _tables(ctx: typer.Context) -> "TableHome":
    from st_common.query.table_rows import TableHome

    home, conf = context.home(ctx, must_exist=True), context.conf(ctx)
    return TableHome(home=home, conf=conf, streams=lambda: context.streams(ctx))


def _feature(values: list[str], fid: str | None, geometry: str | None) -> Any:
    """A feature of GeoJSON by words of a command line."""
    import shapely

    properties: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not equals or not name or name in properties:
            raise LayerError(
                f"{each!r} is no COLUMN=VALUE, or stands twice",
                hint='such as plate="B-XY 12"',
            )
        properties[name] = value
    shape = None
    if geometry is not None:
        try:
            shape = json.loads(shapely.to_geojson(shapely.from_wkt(geometry)))
        except (shapely.errors.ShapelyError, ValueError, TypeError):
            raise LayerError(
                f"{geometry!r} is no well-known text", hint="POINT (13.4 52.5)"
            ) from None
    given = {} if fid is None else {"id": fid}
    return {"type": "Feature", **given, "geometry": shape, "properties": properties}


def _parsed(row: str) -> Any:
    try:
        return json.loads(row)
    except (ValueError, RecursionError):
        raise LayerError("--row is no JSON", hint="a feature of GeoJSON") from None


def _box(text: str) -> tuple[float, float, float, float]:
    try:
        minx, miny, maxx, maxy = map(float, text.split(","))
    except ValueError:
        raise LayerError(
            f"--box {text!r} is no rectangle", hint="four numbers: minx,miny,maxx,maxy"
        ) from None
    return minx, miny, maxx, maxy


def _tell(did: str, done: "Put") -> None:
    rows = f"{done.rows:,} row{'s' * (done.rows != 1)}"
    typer.echo(f"{did} {rows}: table {done.table}, version {done.version}")
    if done.streams:
        typer.echo(f"told to {', '.join(done.streams)}")


def _write(values: list[Any]) -> None:
    from st_common.answers.json_rows import json_line

    for value in values:
        typer.echo(json_line(value))


def _tell_files(found: dict[str, Any]) -> None:
    typer.echo(f"read {found['files_read']} of {found['files']} files", err=True)
