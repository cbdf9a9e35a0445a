"""What the shell does with a text: carries out statements as `fairway query` does, and commands of its own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from st_common.answers.names_known import Known
from st_common.answers.typed_text import is_command
from st_common.cli import context
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError

if TYPE_CHECKING:
    from st_common.cli.shell.watching import Watching

_HELP = r"""Statements end with ; and are carried out as by `fairway query register`:
  REGISTER QUERY name AS SELECT ...;   REPLACE QUERY name AS ...;   DROP QUERY name;
  CREATE AREA name AS region;   DROP AREA name;   CREATE STREAM name AS SELECT ...;   DROP STREAM name;
  SHOW QUERIES | AREAS | STREAMS;   EXPLAIN name;
Commands:
  \watch NAME     show the changes of a query as they come (those registered here are watched already)
  \unwatch [NAME] show them no more
  \answer NAME    who is in the answer now
  \params [FILE]  carry out statements with parameters ($1, $name) for each row of a CSV or Parquet; without one no more
  \h              this help
  \q              leave, as Ctrl-D does"""


class Shell:
    """Carries out texts; a context manager, for it may have a thread that watches."""

    def __init__(
        self, ctx: typer.Context, home: Home, streams: Mapping[str, StreamSettings]
    ) -> None:
        self.ctx, self.home, self.done = ctx, home, False
        self.known = Known(home, streams)
        self.params: Path | None = None
        self._watching: Watching | None = None

    def __enter__(self) -> Self:
        """The shell itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what watches."""
        if self._watching is not None:
            self._watching.close()

    def carry_out(self, text: str, *, watch: bool = False) -> None:
        """Carries out statements, all or none, or one command; with `watch` what it registers is watched.

        Raises:
            FairwayError: what is wrong with it.
        """
        if is_command(text):
            self._command(text.strip().rstrip(";").split())
            return
        from st_common.cli.query import carried_out
        from st_common.cli.statements import statements_of

        said = statements_of(self.ctx, None, text, self.params)
        rows = carried_out(self.ctx, said).rows
        self.known.forget()
        self.known.streams = context.streams(self.ctx)
        for row in rows if watch else ():
            if row.op == "register":
                self.watching.add(row.name, since=row.position)

    @property
    def watching(self) -> "Watching":
        """What follows queries; made when it is needed."""
        if self._watching is None:
            from st_common.cli.shell.watching import Watching

            self._watching = Watching(self.home, typer.echo)
        return self._watching

    def _command(self, words: list[str]) -> None:
        command = COMMANDS.get(words[0])
        if command is None:
            raise ConfigError(
                f"there is no command {words[0]}",
                hint=rf"{', '.join(COMMANDS)}; \h says what they do",
            )
        command(self, " ".join(words[1:]).strip('"'))


def _quit(shell: Shell, _: str) -> None:
    shell.done = True


def _help(_: Shell, __: str) -> None:
    typer.echo(_HELP)


def _watch(shell: Shell, name: str) -> None:
    if name:
        typer.echo(f"watching {shell.watching.add(name)}")
    else:
        typer.echo(f"watching {', '.join(shell.watching.names) or 'nothing'}")


def _unwatch(shell: Shell, name: str) -> None:
    dropped = shell.watching.drop(name or None)
    if name and not dropped:
        raise ConfigError(
            f"query {name!r} is not watched",
            hint=f"there are {', '.join(shell.watching.names) or 'none'}",
        )
    typer.echo(f"no longer watching {', '.join(dropped) or 'anything'}")


def _answer(shell: Shell, name: str) -> None:
    from st_common.answers.answers import answered
    from st_common.cli.output import shown, write
    from st_common.query.lookup import find

    members: Any = answered(shell.home, find(shell.home, name).name)
    write(shown(members.rows, "table"), "table")


def _params(shell: Shell, name: str) -> None:
    from st_common.query.parameter_table import read_table

    path = Path(name) if name else None
    if path is not None:
        read_table(path)  # what is wrong with it is told now
    shell.params = path
    typer.echo(f"parameters: {name or 'none'}")


NAMING = (r"\watch", r"\unwatch", r"\answer")  # take the name of a query
COMMANDS: Mapping[str, Callable[[Shell, str], None]] = {
    r"\watch": _watch,
    r"\unwatch": _unwatch,
    r"\answer": _answer,
    r"\params": _params,
    r"\h": _help,
    r"\q": _quit,
}
