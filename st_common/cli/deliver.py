"""`fairway deliver`: changes to a webhook, to Kafka or into files."""

from argparse import Namespace

import typer

from st_common.cli import context
from st_common.cli.arguments import taking
from st_common.programs import DELIVER


@taking(DELIVER)
def deliver(ctx: typer.Context, given: Namespace) -> None:
    """Deliver changes to their receiver, at least once and in their order, from where the delivery ended before."""
    from st_common.delivery.deliver import deliver as deliver_to
    from st_common.delivery.settings import delivery_of

    delivery = delivery_of(context.conf(ctx), context.streams(ctx), given.delivery)
    done = deliver_to(
        context.home(ctx, must_exist=True), delivery, until_idle=given.until_idle
    )
    typer.echo(
        f"{given.delivery}: {done.delivered:,} changes delivered, {done.dead_letters:,} dead letters, "
        f"{done.failed_tries:,} failed tries in {done.seconds} s"
    )
