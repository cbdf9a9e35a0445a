"""`fairway streams`: on which engine streams run, and how they go over to another one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from st_common.cli import context
from st_common.cli.arguments import Json, Stream

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings
    from st_common.engine.topology import Topology


def list_streams(ctx: typer.Context, *, json_lines: Json = False) -> None:
    """List the streams: the engine and shards that they were begun with, and those that the settings say."""
    from st_common.cli.output import write_listing
    from st_common.engine.topology import topology_of

    home, rows, records = context.home(ctx, must_exist=True), [], []
    for name, stream in context.streams(ctx).items():
        begun, (engine, shards) = topology_of(home, name), _wanted(stream)
        since = (str(begun.generation), str(begun.start)) if begun else ("", "")
        settings = f"{engine} with {shards}"
        rows.append((name, str(begun or "never run"), settings, *since))
        records.append(
            {
                "stream": name,
                "engine": begun and begun.engine,
                "shards": begun and begun.shards,
                "settings_engine": engine,
                "settings_shards": shards,
                "generation": begun and begun.generation,
                "since_segment": begun and begun.start,
            }
        )
    names = ("stream", "runs on", "settings", "generation", "since segment")
    write_listing(names, rows, records, json_lines=json_lines)


def reshard(
    ctx: typer.Context,
    stream: Stream,
    *,
    shards: Annotated[
        int | None, typer.Option(help="How many; else what the settings say.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="spark or local; else what the settings say.")
    ] = None,
) -> None:
    """Take a stream to another number of shards or another engine, at the end of its log, with all that it knows."""
    from st_common.engine.reshard import of_local
    from st_common.engine.reshard import reshard as go_over
    from st_common.engine.topology import topology_of
    from st_common.operations.forgiving import forgive

    home = context.home(ctx, must_exist=True)
    settings, export = context.stream(ctx, stream), of_local
    wanted = _wanted(settings, engine=engine, shards=shards)
    now = topology_of(home, stream)
    if now is not None and now.engine == "spark":
        from st_common.spark.resident import states_of_shards as export
    done = go_over(home, settings, engine=wanted[0], shards=wanted[1], export=export)
    forgive(home, stream)
    if done.before == done.after:
        typer.echo(f"{stream} runs on {done.after} already")
    else:
        typer.echo(
            f"{stream}: from {done.before} to {done.after}, from segment {done.after.start} on, "
            f"with {done.objects:,} objects"
        )
    _advise(settings, done.after, context.conf(ctx))


def reset(
    ctx: typer.Context,
    stream: Stream,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Begin a stream anew from its log: the next run decodes and judges all of it with the settings of now."""
    from st_common.batch.reset import reset as begin_anew
    from st_common.operations.forgiving import forgive

    home = context.home(ctx, must_exist=True)
    context.stream(ctx, stream)
    what = f"This removes the changes, positions, rejects, latest fixes and snapshots of {stream}, and its state."
    if not yes and not typer.confirm(f"{what} Its log and its queries stay. Go on?"):
        raise typer.Exit(1)
    done = begin_anew(home, stream)
    forgive(home, stream)
    typer.echo(f"{stream} begins anew: the next run reads {done.segments:,} segments")
    if done.kept:
        typer.echo(
            f"{done.kept:,} of them stay as they were decoded when they were captured: raw bytes are gone"
        )


def retry(
    ctx: typer.Context,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM", help="A stream, or a delivery as deliveries/NAME."
        ),
    ],
) -> None:
    """Let a stream or delivery that was given up start again at once, at the next look of who runs it."""
    from st_common.operations.forgiving import retry as start_again

    start_again(context.home(ctx, must_exist=True), stream)
    typer.echo(f"{stream}: it is started at the next look")


def skip(
    ctx: typer.Context,
    stream: Stream,
    segment: Annotated[
        int,
        typer.Argument(
            metavar="SEGMENT", help="The number of a segment of its log.", min=0
        ),
    ],
    *,
    why: Annotated[
        str,
        typer.Option("--why", metavar="TEXT", help="Why it is given up; it is kept."),
    ],
) -> None:
    """Pass over a segment that is damaged or missing: what it held is lost, and every reader of the log knows it."""
    from st_common.log.log import Log
    from st_common.operations.alerts import tell
    from st_common.operations.forgiving import forgive

    home = context.home(ctx, must_exist=True)
    context.stream(ctx, stream)
    Log(home.log(stream)).skip(segment, why)
    forgive(home, stream)
    text = f"segment {segment} of its log is passed over: {why}"
    tell(home, stream, text)
    typer.echo(f"{stream}: {text}")


def _wanted(
    stream: "StreamSettings", *, engine: str | None = None, shards: int | None = None
) -> tuple[str, int]:
    """The engine and the shards that a stream should have: as given, else as its settings say; local has one shard."""
    engine = engine or stream.engine
    usual = 1 if engine == "local" else stream.shards
    return engine, usual if shards is None else shards


def _advise(stream: "StreamSettings", now: "Topology", conf: Path) -> None:
    """Says which lines of the settings must be changed, for they say what a stream should be."""
    lines = [f'engine = "{now.engine}"'] if stream.engine != now.engine else []
    if now.engine == "spark" and stream.shards != now.shards:
        lines.append(f"shards = {now.shards}")
    if lines:
        path = conf / "streams.toml" if conf.is_dir() else conf
        typer.echo(
            f"now set {' and '.join(lines)} in [streams.{stream.name}] of {path}"
        )
