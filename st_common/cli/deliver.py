"""`fairway deliver`: changes to a webhook, to Kafka or into files."""

from typing import Annotated

import typer

from st_common.cli import context


def deliver(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The name of a delivery in conf/deliveries.toml."
        ),
    ],
    *,
    until_idle: Annotated[
        bool,
        typer.Option(
            "--until-idle", help="End when all that is committed is delivered."
        ),
    ] = False,
) -> None:
    """Deliver changes to their receiver, at least once and in their order, from where the delivery ended before."""
    from st_common.delivery.deliver import deliver as deliver_to
    from st_common.delivery.settings import delivery_of

    delivery = delivery_of(context.conf(ctx), context.streams(ctx), name)
    done = deliver_to(
        context.home(ctx, must_exist=True), delivery, until_idle=until_idle
    )
    typer.echo(
        f"{name}: {done.delivered:,} changes delivered, {done.dead_letters:,} dead letters, "
        f"{done.failed_tries:,} failed tries in {done.seconds} s"
    )
