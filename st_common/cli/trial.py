"""`fairway try`: a query on a file, from nothing to its changes, without a home and without settings."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli.arguments import (
    Form,
    JsonLines,
    ObjectColumn,
    PlaceColumn,
    TimeColumn,
    XColumn,
    YColumn,
    named_columns,
)
from st_common.errors import ConfigError
from st_common.loopback import SERVE_PORT
from st_common.memory import let_arrow_give_back
from st_common.uncollected import uncollected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file that `fairway check` reads, - for standard input, or sample:ships, which comes with Fairway.",
    ),
]
_QUERY = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help='What to ask, FROM data: "SELECT * FROM data INSIDE (24.9, 60.1, 25.0, 60.2)".',
    ),
]
_ANSWER = Annotated[
    bool,
    typer.Option("--answer", help="Show who is in the answer at the end, not changes."),
]
_AT = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="T",
        help="Show who was in the answer at this time: ISO 8601, UTC if no zone is given.",
    ),
]
_SET = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the stream, as docs/settings.md lists them: silence_s=300; may be given again.",
    ),
]
_LAYER = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        metavar="NAME=FILE",
        help="A file of features for JOIN LAYER NAME, such as GeoJSON; may be given again.",
    ),
]
_PAGE = Annotated[
    bool,
    typer.Option(
        "--page",
        help="Serve the page while the file is replayed into it, until Ctrl-C; show no changes here.",
    ),
]
_PORT = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="With --page: the port; 0 is any that is free."
    ),
]
_SPEED = Annotated[
    float | None,
    typer.Option(
        "--speed",
        metavar="X",
        help="With --page: how many times as fast as its times the file is replayed; "
        "else so that it takes about two minutes.",
    ),
]


def try_query(
    file: _FILE,
    query: _QUERY,
    *,
    object_column: ObjectColumn = None,
    time: TimeColumn = None,
    x: XColumn = None,
    y: YColumn = None,
    place: PlaceColumn = None,
    settings: _SET = None,
    layers: _LAYER = None,
    answer: _ANSWER = False,
    at: _AT = None,
    form: Form = "table",
    json_lines: JsonLines = False,
    page: _PAGE = False,
    port: _PORT = SERVE_PORT,
    speed: _SPEED = None,
) -> None:
    """Try a query on a file: from nothing to the changes of its answer. No home is needed, and none is left.

    Columns are found as `fairway check` finds them, or are named; all others are attributes. FROM says data, or the
    name of the file without its ending. What was guessed, and what is left out, is told on standard error.
    """
    let_arrow_give_back()
    if page and (answer or at is not None or json_lines or form != "table"):
        raise ConfigError(
            "--page shows changes and answers on the page",
            hint="leave out --answer, --at, --format and --json, or --page",
        )
    if speed is not None and not page:
        raise ConfigError("--speed is of a replay", hint="add --page")
    with uncollected():  # all that is imported stays
        from st_common.cli.output import shown, write
        from st_common.client.evaluated_stream import Given
        from st_common.client.evaluation import evaluate_given

    owner = {} if object_column is None else {"object": object_column}
    given = Given(
        columns=owner | named_columns(time=time, x=x, y=y, place=place),
        settings=_settings(settings or []),
        layers=dict(_pair(one, "--layer", "zones=FILE") for one in layers or []),
    )
    if page:
        from st_common.cli.trial_page import serve_trial

        serve_trial(
            file, query, given, port=port, speed=speed, read=_tell, say=typer.echo
        )
        return
    form = "jsonl" if json_lines else form
    with evaluate_given(file, query, given) as seen:
        _tell(seen.settings, seen.notes)
        if answer or at is not None:
            write(shown(seen.at(at).table.drop_columns(["geometry"]), form), form)
        else:
            write(seen.changes.table.drop_columns(["geometry"]), form)


def _settings(pairs: list[str]) -> dict[str, Any]:
    """The table that KEY=VALUE give: a value is one of TOML, or else a text.

    Raises:
        ConfigError: one has no `=`, or a key of which nobody knows what it is.
    """
    from st_common.client.evaluated_stream import merged

    table: dict[str, Any] = {}
    for pair in pairs:
        key, value = _pair(pair, "--set", "silence_s=300")
        inner: Any = _value(value)
        for name in reversed(key.split(".")):
            inner = {name: inner}
        table = merged(table, inner)
    return table


def _value(text: str) -> Any:
    """A value of TOML; what is none is a text."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, is_one, value = text.partition("=")
    if not (name.strip() and is_one and value.strip()):
        raise ConfigError(f"{option} {text!r} is no pair", hint=f"{option} {example}")
    return name.strip(), value.strip()


def _tell(table: "Mapping[str, Any]", notes: "Sequence[str]") -> None:
    """Says on standard error how records were read, and what should be looked at."""
    columns = table.get("columns", {})
    parts = [f"{key} = {_named(name)}" for key, name in columns.items()]
    typer.echo(f"read as {table['format']}: {', '.join(parts)}", err=True)
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _named(column: Any) -> str:
    return " and ".join(column) if isinstance(column, list | tuple) else str(column)
