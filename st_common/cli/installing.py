"""`fairway init`: what is done once, after the installation."""

from pathlib import Path
from shutil import copyfile
from typing import Annotated

import typer

from st_common.cli import context
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.installed import sample_file, shipped

_FIRST = (
    "fairway query register --text "
    "'REGISTER QUERY port AS SELECT * FROM example INSIDE (24.945, 60.160, 24.965, 60.168)'",
    "fairway replay example sample:ships",
    "fairway run example --until-idle",
    "fairway changes port",
)
"""What shows something of the stream that a new home has."""
_FROM = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FOLDER",
        exists=True,
        file_okay=False,
        help="With --spark: copy the jars from this folder or below it; else Maven fetches them.",
    ),
]

_SPARK = Annotated[
    bool,
    typer.Option(
        "--spark",
        help="In place of a home, bring the jars of the engine spark, compare their sums, say where they are.",
    ),
]


def init(ctx: typer.Context, *, spark: _SPARK = False, source: _FROM = None) -> None:
    """Make a home folder with settings: HOME/conf, with a stream that runs as it is. What is there stays as it is."""
    if source is not None and not spark:
        raise ConfigError("--from is for the jars of Spark", hint="add --spark")
    if spark:
        _bring_jars(source)
    else:
        _make_home(ctx)


def _make_home(ctx: typer.Context) -> None:
    home = context.home(ctx)
    settings = home.root / "conf" / "streams.toml"
    written = begin(home)
    for path in written:
        typer.echo(f"wrote {path}")
    if settings in written:
        typer.echo("its stream, of ships off Helsinki, can be run as it is:")
        for command in _FIRST:
            typer.echo(f"  {command}{context.at_home(ctx)}")
    typer.echo(
        f"describe your streams in {settings}, or: fairway check FILE --write NAME{context.at_home(ctx)}"
    )


def _bring_jars(source: Path | None) -> None:
    from st_common.config.environment import jars_dir
    from st_common.operations.jars import bring

    folder = jars_dir()
    brought = bring(folder, source)
    for name in brought:
        typer.echo(f"{name}: its sum is right")
    typer.echo(f"{'brought to' if brought else 'all there in'} {folder}")


def begin(home: Home) -> list[Path]:
    """Makes a home folder with the settings that came with the package, to be changed; files that are there stay.

    They have one stream, of the sample that comes along; other examples are comments. Schemas lie beside them.

    Returns:
        The files that were written, sorted.

    Raises:
        ConfigError: the home is a file.
    """
    if home.root.is_file():
        raise ConfigError(f"{home.root} is a file", hint="--home DIR names a folder")
    folder = home.root / "conf"
    (folder / "schema").mkdir(parents=True, exist_ok=True)
    for schema in shipped("conf/schema").glob("*.json"):
        copyfile(
            schema, folder / "schema" / schema.name
        )  # of this version: for editors
    written = []
    for template in sorted(shipped("conf").glob("*.toml")):
        target = folder / template.name
        if not target.exists():
            target.write_text(_template(template), encoding="utf-8")
            written.append(target)
    return written


def _template(path: Path) -> str:
    """The text of a file of settings; the streams in it are comments, below one that can be run as it is."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if path.name != "streams.toml":
        return "".join(lines)
    example = sample_file("streams.toml").read_text(encoding="utf-8")
    of_editors, *others = lines
    rest = (line if _says_nothing(line) else f"# {line}" for line in others)
    return of_editors + example + "".join(rest)


def _says_nothing(line: str) -> bool:
    return line.startswith("#") or not line.strip()
