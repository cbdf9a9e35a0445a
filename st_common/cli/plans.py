"""Plans as JSON on the command line: from a file to a statement, and from the registry to the terminal."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from st_common.cli.text_file import read_text
from st_common.errors import ConfigError, QueryError

if TYPE_CHECKING:
    from st_common.query.control import QueryRow
    from st_common.query.text import Statement


def statement_of_plan(
    file: Path | None, name: str | None, *, replace: bool, alone: bool
) -> "Statement":
    """The statement that registers, or replaces, the query `name` by the plan of a JSON file; `-` is standard input.

    `alone` says that no statements were given beside it.

    Raises:
        QueryError: what is wrong with the plan, each mistake with its place in the JSON.
    """
    from st_common.query.built import statement_of
    from st_common.query.plan_json import built_from_json, places_in

    if file is None or not alone:
        raise ConfigError(
            "a plan stands alone", hint="--plan FILE --name NAME, and no statements"
        )
    if not name:
        raise ConfigError(
            "a plan has no name of its own", hint="--plan FILE --name NAME"
        )
    try:
        built = built_from_json(read_text(file))
    except QueryError as error:
        raise QueryError(f"{file}: {error.message}", hint=error.hint) from None
    op: Literal["register", "replace"] = "replace" if replace else "register"
    return statement_of(built, name, op=op, places=places_in(str(file)))


def write_plan(row: "QueryRow") -> None:
    """Writes the plan of a query as JSON, which `--plan` reads.

    Raises:
        QueryError: the query was dropped: it has no plan any more.
    """
    if row.plan is None:
        raise QueryError(
            f"query {row.name!r} was dropped", hint="--version N shows an older plan"
        )
    typer.echo(json.dumps(row.plan.to_json(), indent=2, ensure_ascii=False))
