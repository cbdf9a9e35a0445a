"""`fairway verify`: whether what streams say holds, and what they have stored."""

import random
from contextlib import contextmanager
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Json
from st_common.errors import ConfigError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from st_common.checks.verify import Verified
    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings


def verify(
    ctx: typer.Context,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY", help="One query; else all.", show_default=False
        ),
    ] = None,
    *,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="NAMES",
            help="These alone: names with commas between them; * and ? stand for letters.",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="So many of the queries, at random."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Of the sample: the same one once more."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="POSITION",
            help="Check places and events that were told from this position on, and the log from there.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on where a run was cut off, if nothing changed since."
        ),
    ] = False,
    json_lines: Json = False,
) -> None:
    """Check answers by brute force over the archived positions, and what is stored; exit code 3: something is wrong.

    Of all queries also the checksums of the log, the files of the tables, the folds at every place, and the newest
    part of the log, made once more. Exit code 1: a query could not be evaluated; 2: a table could not be read.
    """
    from st_common.config.streams import stream_of
    from st_common.engine.topology import topology_of
    from st_common.position import parsed
    from st_common.query.lookup import queries as registered

    home, streams = context.home(ctx, must_exist=True), context.streams(ctx)
    start = 0 if since is None else parsed(since)
    names = {row.name: row.stream for row in registered(home)}
    chosen = _chosen(list(names), query, queries, sample, seed)
    is_whole = query is None and queries is None and sample is None
    found = {"wrong": 0, "failed": 0}
    refused: list[TableError] = []
    for name in sorted({names[one] for one in chosen}):
        mine = [one for one in chosen if names[one] == name]
        stream = stream_of(streams, name)
        with _going_on(refused):
            for one in _checked(
                home, stream, mine, since=start, resume=resume, is_whole=is_whole
            ):
                found["failed"] += one.failed
                found["wrong"] += not one.holds and not one.failed
                _write(name, one, json_lines=json_lines)
    ran = [
        stream
        for name, stream in streams.items()
        if is_whole and topology_of(home, name)
    ]
    for stream in ran:
        with _going_on(refused):
            found["wrong"] += _audited(home, stream, start, json_lines=json_lines)
    _end(found, refused)


@contextmanager
def _going_on(refused: list[TableError]) -> "Iterator[None]":
    """Takes down which table is not read: other streams have tables of their own."""
    try:
        yield
    except TableError as error:
        refused.append(error)


def _end(found: "Mapping[str, int]", refused: list[TableError]) -> None:
    """Names the tables that were not read, and ends with the exit code of the worst that was found."""
    for told in dict.fromkeys(map(str, refused)):
        typer.echo(f"error: {told}", err=True)
    if found["wrong"]:
        raise typer.Exit(3)
    if refused:
        raise typer.Exit(TableError.exit_code)
    if found["failed"]:
        raise typer.Exit(1)


def _chosen(
    names: list[str],
    query: str | None,
    patterns: str | None,
    sample: int | None,
    seed: int | None,
) -> list[str]:
    """The queries that are asked for, of all that are registered; of a sample it is said which.

    Raises:
        ConfigError: nothing has such a name.
    """
    hint = "`fairway query list` names them"
    if query is not None and patterns is not None:
        raise ConfigError("QUERY and --queries", hint="one of the two")
    if query is not None and query not in names:
        raise ConfigError(f"there is no query {query!r}", hint=hint)
    asked = [query] if query is not None else (patterns or "*").split(",")
    for pattern in asked if names or patterns is not None else ():
        if not any(fnmatchcase(name, pattern.strip()) for name in names):
            raise ConfigError(f"no query is called {pattern.strip()!r}", hint=hint)
    chosen = [
        name
        for name in names
        if any(fnmatchcase(name, pattern.strip()) for pattern in asked)
    ]
    if sample is None:
        if seed is not None:
            raise ConfigError(
                "--seed without --sample", hint="say how many: --sample 10"
            )
        return chosen
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    some = random.Random(seed).sample(sorted(chosen), min(sample, len(chosen)))  # noqa: S311 - no secret
    typer.echo(f"{len(some)} of {len(chosen)} queries, --seed {seed}", err=True)
    return sorted(some)


def _checked(
    home: "Home",
    stream: "StreamSettings",
    names: list[str],
    *,
    since: int,
    resume: bool,
    is_whole: bool,
) -> "list[Verified]":
    """What is found of each query, with a line on a terminal that says how far it is; noted for who goes on later."""
    from st_common.checks.verify import Notebook, verified
    from st_common.cli.progress import progress_of_many

    notebook = None
    if (
        resume or is_whole
    ):  # of some alone nothing is taken down: what a whole run has found stays
        notebook = Notebook.of(home.stream(stream.name), goes_on=resume)
    found: list[Verified] = []
    try:
        with progress_of_many(f"verify {stream.name}", len(names)) as told:
            for one in verified(home, stream, names, since=since, notebook=notebook):
                found.append(one)
                told(len(found), one.query)
    finally:
        if notebook is not None:
            notebook.write_if_open()
    if resume and notebook is not None:
        typer.echo(f"{stream.name}: {notebook.said()}", err=True)
    return found


def _write(stream: str, one: "Verified", *, json_lines: bool) -> None:
    from st_common.cli.output import write_said

    count = "" if one.members is None else f"{one.members} members "
    said = f"{one.query}: {count}at position {one.position}: {_verdict(one)}"
    record = {"stream": stream, **asdict(one), "holds": one.holds}
    write_said(said, record, json_lines=json_lines)


def _verdict(one: "Verified") -> str:
    """What is said of an answer that was looked at."""
    if one.failed:
        return f"NOT CHECKED, {one.unchecked}"
    if not one.checked:
        return f"not checked, {one.unchecked}"
    wrong = f"WRONG: {one.missing} missing, {one.extra} too many"
    if one.misplaced:
        wrong += f", {one.misplaced} changes with another place than their fix"
    verdict = "holds" if one.holds else wrong
    if one.late:
        verdict += f", by {one.fixes - one.late:,} of {one.fixes:,} fixes: {one.late:,} came too late"
    return f"{verdict}; not checked: {one.unchecked}" if one.unchecked else verdict


def _audited(
    home: "Home", stream: "StreamSettings", since: int, *, json_lines: bool
) -> int:
    """Says what was found among all that a stream has stored, and gives how much of it is wrong."""
    from st_common.checks.audit import audit
    from st_common.cli.output import write_said

    wrong = 0
    for finding in audit(home, stream, since=since):
        wrong += finding.problem is not None
        verdict = "holds" if finding.problem is None else f"WRONG: {finding.problem}"
        said = f"{stream.name}: {finding.what}: {verdict}"
        said += f"; not checked: {finding.unchecked}" if finding.unchecked else ""
        record = {"stream": stream.name, **asdict(finding)}
        record["holds"] = finding.problem is None
        write_said(said, record, json_lines=json_lines)
    return wrong
