"""`fairway run`, `status`, `doctor`: streams as they run, and what is there for them."""

from argparse import Namespace
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, taking
from st_common.cli.metrics import serve_metrics, write_metrics
from st_common.cli.progress import progress_of_run
from st_common.errors import ConfigError, FairwayError
from st_common.extras import require_engine
from st_common.memory import let_arrow_give_back
from st_common.programs import RUN_STREAM
from st_common.uncollected import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from st_common.answers.stream_state import StreamState
    from st_common.config.home import Home
    from st_common.config.stream import StreamSettings
    from st_common.engine.summary import RunSummary
    from st_common.sources.note import CaptureNote


@taking(RUN_STREAM)
def run(ctx: typer.Context, given: Namespace) -> None:
    """Follow a stream's log: changes of every answer, positions and rejects into their tables."""
    stream = given.stream
    settings = context.stream(ctx, stream)
    chosen = given.engine or settings.engine
    require_engine(chosen, stream)
    if chosen == "local":
        let_arrow_give_back()  # before anything imports Arrow
    follow = _engine(chosen)
    from st_common.lineage.telling import telling_stream
    from st_common.operations.status import read_status

    home = context.home(ctx)
    with (
        _unreachable_is_wrong(),
        telling_stream(home, context.conf(ctx), stream),
        progress_of_run(stream, lambda: read_status(home.stream(stream))),
        _joining(ctx, settings, until_idle=given.until_idle),
    ):
        summary = follow(home, settings, until_idle=given.until_idle)
    _tell(stream, summary)
    if summary.rejects:
        _name_rejects(home, stream)
    _warn_of_late(home, settings, late=summary.late, fixes=summary.fixes)


@contextmanager
def _joining(
    ctx: typer.Context, settings: "StreamSettings", *, until_idle: bool
) -> "Iterator[None]":
    """Joins the two streams of a joint one beside its engine; of others nothing."""
    if not settings.joins:
        yield
        return
    from st_common.delivery.feeders import joining

    home, streams = context.home(ctx), context.streams(ctx)
    with joining(home, settings, streams, until_idle=until_idle):
        yield


def _engine(name: str) -> "Callable[..., RunSummary]":
    """What runs a stream on an engine.

    All that is imported stays; to look at it again and again for garbage would take a sixth of the time.
    """
    with uncollected():
        if name == "local":
            from st_common.engine.run import run as follow
        else:
            from st_common.spark.resident import run as follow
    return follow


@contextmanager
def _unreachable_is_wrong() -> "Iterator[None]":
    """A cluster that does not answer is a wrong setting to whoever typed the command: only a supervisor waits."""
    from st_common.operations.standalone import UnreachableError

    try:
        yield
    except UnreachableError as error:
        raise ConfigError(error.message, hint=error.hint) from None


def _tell(stream: str, summary: "RunSummary") -> None:
    from st_common.operators.skeleton.cache_counts import lines_of

    rate = round(summary.fixes / summary.seconds) if summary.seconds else 0
    typer.echo(
        f"{stream}: {summary.fixes:,} fixes ({rate:,}/s), {summary.rejects:,} rejects, {summary.late:,} late, "
        f"{summary.double:,} double, {summary.cut:,} cut, {summary.changes:,} changes in {summary.seconds} s"
    )
    if summary.nulled:
        typer.echo(_nulled(stream, summary.nulled))
    if summary.filtered_out:
        typer.echo(_filtered_out(stream, summary.filtered_out))
    if summary.filtered:
        typer.echo(_filtered(stream, summary.filtered))
    for told in lines_of(summary.caches).values():
        typer.echo(f"{stream}: caches {told}")
    typer.echo(_work(summary.operators))


def _name_rejects(home: "Home", stream: str) -> None:
    """Says why records are no fixes, as far as they are archived."""
    from st_common.rejects.listed import listed

    counts = listed(home, stream, most=0).counts
    if counts:
        said = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        typer.echo(f"{stream}: rejects: {said}; fairway quality rejects {stream}")


def _warn_of_late(
    home: "Home", stream: "StreamSettings", *, late: int, fixes: int
) -> None:
    """Says on stderr which fixes came too late, and why, where more than one in a hundred did."""
    from st_common.answers.stream_state import is_much

    if not is_much(late, fixes):
        return
    from st_common.answers.lateness import warnings_of

    for line in warnings_of(home, stream, late=late, fixes=fixes):
        typer.echo(f"warning: {stream.name}: {line}", err=True)


_WORK = {
    "gone": "objects said to be gone",
    "expired": "objects silent for too long",
    "enters": "entered",
    "leaves": "left",
    "stays": "stayed",
    "probed": "places looked up",
    "matched": "matches before conditions",
    "ticks": "ticks judged",
    "touched": "objects and pairs looked at there",
    "refills": "caches filled anew",
    "misses": "members that a cache lacked",
    "cut": "fixes beyond what a frame keeps",
}


def _work(counts: "Mapping[str, int]") -> str:
    """What queries did with the fixes, in words; what never happened is left out."""
    done = [
        f"{_WORK.get(name, name)} {count:,}" for name, count in counts.items() if count
    ]
    return f"queries: {', '.join(done) or 'nothing to do'}"


def status(
    ctx: typer.Context,
    *,
    json_lines: Json = False,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write metrics for Prometheus to a file, whole or not at all, in place of the table; -: the screen.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve them at http://HOST:PORT/metrics until interrupted; a port of 0 is any that is free.",
        ),
    ] = None,
) -> None:
    """Show each stream: its state, the process that runs it, how far it is, its clock, what it counted."""
    if json_lines + (metrics is not None) + (listen is not None) > 1:
        raise ConfigError(
            "--json, --metrics and --listen do not go together", hint="choose one"
        )
    if metrics is not None:
        write_metrics(ctx, metrics)
    elif listen is not None:
        serve_metrics(ctx, listen)
    else:
        _show_status(ctx, json_lines=json_lines)


def _show_status(ctx: typer.Context, *, json_lines: bool) -> None:
    from st_common.answers.stream_state import COUNTS, state_of
    from st_common.cli.output import write_listing

    home = context.home(ctx, must_exist=True)
    states = [
        state_of(home, name, wanted=one.running)
        for name, one in context.streams(ctx).items()
    ]
    write_listing(
        (*_SEEN, *COUNTS),
        [_row(state) for state in states],
        [state.to_json() for state in states],
        json_lines=json_lines,
    )
    for state in states:
        if state.said is not None:
            settings = context.stream(ctx, state.stream)
            _warn_of_late(home, settings, late=state.said.late, fixes=state.said.fixes)
    for note in () if json_lines else chain.from_iterable(map(_notes, states)):
        typer.echo(note)


_SEEN = ("stream", "state", "process", "last beat", "engine", "segments", "clock")


def _row(state: "StreamState") -> tuple[str, ...]:
    """A stream as cells: who runs it, when it was heard last, how far it is, its counts."""
    from st_common.answers.stream_state import COUNTS, stamp

    now, said = state.now, state.said
    segments = f"{state.segments_done}/{state.segments}"
    if said is None:
        unknown = [""] * (1 + len(COUNTS))
        return (state.stream, now.state, "", "", "", segments, *unknown)
    process = f"{now.owner.pid} on {now.owner.host}" if now.owner else ""
    heard = "" if now.age_s is None else _ago(now.age_s)
    clock = "" if said.now_ts is None else stamp(said.now_ts)
    counts = [f"{getattr(said, name):,}" for name in COUNTS]
    seen = (state.stream, now.state, process, heard, said.engine, segments, clock)
    return (*seen, *counts)


def _notes(state: "StreamState") -> "Iterator[str]":
    """What is said of a stream below the table."""
    said, stream = state.said, state.stream
    if state.now.why is not None:
        yield f"{stream}: {state.now.state}: {state.now.why}"
    if said is not None and said.nulled:
        yield _nulled(stream, said.nulled)
    if said is not None and said.filtered_out:
        yield _filtered_out(stream, said.filtered_out)
    if said is not None and said.filtered:
        yield _filtered(stream, said.filtered)
    if said is not None and said.caches:
        yield from (f"{stream}: caches {line}" for line in _cache_lines(said.caches))
    if state.waits_for:
        yield f"{stream}: waits for {state.waits_for} for {state.waits_s:.0f} s: it goes by the stream furthest behind"
    for note in state.sources:
        yield f"{stream}: {_source(note, state.as_of_us)}"


def _cache_lines(caches: "Mapping[str, Any]") -> "Iterable[str]":
    """What is said of caches; it needs NumPy, which a look at the state does without."""
    from st_common.operators.skeleton.cache_counts import lines_of

    return lines_of(caches).values()


def _source(note: "CaptureNote", now_us: int) -> str:
    """What a source that was captured says of itself."""
    skipped = f", {note.skipped:,} skipped" if note.skipped else ""
    last = ""
    if note.arrived_us is not None:
        last = f", the last {_ago((now_us - note.arrived_us) / 1e6)}"
    count = f"{note.doubts:,} doubt{'s' if note.doubts != 1 else ''}"
    doubt = f"{count}, the last: {note.doubted}"
    told = (note.error, note.warning, doubt if note.doubts else None)
    wrong = "".join(f"; {said}" for said in told if said)
    return f"source {note.source} ({note.kind}): {note.records:,} records{skipped}{last}{wrong}"


def _ago(age_s: float) -> str:
    """An age for people: `12 s ago`, `3 min ago`, `5 h ago`, `2 days ago`."""
    for unit, seconds, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if age_s < most * seconds:
            return f"{age_s / seconds:.0f} {unit} ago"
    return f"{age_s / 86400:.0f} days ago"


def doctor(
    ctx: typer.Context,
    *,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Mend what is torn in the home, as far as it is safe; nothing may run.",
        ),
    ] = False,
) -> None:
    """Look whether all that Fairway needs is there (exit code 2: something is missing), and what is kept for whom.

    Every byte that the home has stored is looked at, too; exit code 1: some are not what was written.
    """
    from st_common.operations.doctor import findings

    if repair:
        _repair(ctx)
    bad = 0
    for what, problem in findings(lambda: _load_settings(ctx)):
        bad += problem is not None
        typer.echo(
            f"{'ok   ' if problem is None else 'WRONG'} {what}{'' if problem is None else f': {problem}'}"
        )
    damaged = _write_damage(ctx)
    bad += _write_refused(ctx)
    _write_held(ctx)
    if bad:
        raise typer.Exit(FairwayError.exit_code)
    if damaged:
        raise typer.Exit(1)


def _write_damage(ctx: typer.Context) -> int:
    """Says what is wrong with the bytes that the home has stored, where there is a home; how much that is."""
    from st_common.engine.recovery import damage_of

    try:
        home = context.home(ctx, must_exist=True)
    except ConfigError:
        return 0
    wrong = 0
    for what, problems in damage_of(home):
        wrong += len(problems)
        for problem in problems:
            typer.echo(f"WRONG {what}: {problem}")
        if not problems:
            typer.echo(f"ok    {what}")
    return wrong


def _write_refused(ctx: typer.Context) -> int:
    """Says which tables another program has made unreadable here, and what cures them; how many they are."""
    from st_common.maintenance.stored import refused_tables

    try:
        home = context.home(ctx, must_exist=True)
    except ConfigError:
        return 0
    refused = list(refused_tables(home))
    for stored, error in refused:
        typer.echo(f"WRONG table {stored.label}: {error}")
    return len(refused)


def _write_held(ctx: typer.Context) -> None:
    """Says what the home keeps beyond its retention, where there is a home with settings."""
    import time

    from st_common.maintenance.held import held

    try:
        home, streams = context.home(ctx, must_exist=True), context.streams(ctx)
    except ConfigError:
        return
    try:
        for line in held(home, streams, now_us=time.time_ns() // 1_000):
            typer.echo(f"kept  {line}")
    except FairwayError as error:  # of a table that cannot be read: it was named above
        typer.echo(f"kept  not known: {error.message}")


def _load_settings(ctx: typer.Context) -> None:
    """Reads the settings of every stream, and whom lineage is told; the first that is wrong is raised."""
    from st_common.lineage.settings import lineage_settings

    lineage_settings(context.conf(ctx))
    for error in context.streams(ctx).broken.values():
        raise error


def _repair(ctx: typer.Context) -> None:
    from st_common.engine.recovery import repair

    done = 0
    for notice in repair(context.home(ctx, must_exist=True)):
        done += 1
        typer.echo(f"MENDED {notice}")
    if not done:
        typer.echo("ok    nothing had to be mended")


def _filtered(stream: str, counts: dict[str, int]) -> str:
    """How many fixes a position filter took out, by reason."""
    told = ", ".join(
        f"{count:,} by {reason}" for reason, count in sorted(counts.items())
    )
    return f"{stream}: filtered {told}"


def _filtered_out(stream: str, counts: dict[str, int]) -> str:
    listed = ", ".join(f"{count:,} by {clause}" for clause, count in counts.items())
    return f"{stream}: records that where did not let in: {listed}"


def _nulled(stream: str, counts: dict[str, int]) -> str:
    listed = ", ".join(f"{name} in {count:,}" for name, count in sorted(counts.items()))
    return f"{stream}: attributes that are null because their text was of another type: {listed} fixes"
