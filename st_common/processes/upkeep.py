"""What `fairway maintain` and its job do: keep all in order that a home holds, or bring its snapshots up to date."""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import chosen, has_streams
from st_common.errors import ConfigError
from st_common.history.taking import bring_up
from st_common.maintenance.leftovers import Cleared, clear_leftovers
from st_common.maintenance.log_retention import LogRetained, retain_logs
from st_common.maintenance.maintain import Maintained, maintain, upkeep_by
from st_common.query.layer_following import follow_layers

Streams = Callable[[], Mapping[str, StreamSettings]]
"""Gives the settings of all streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run of maintenance did: to each table, to the log of each stream, and to what lay beside them."""

    tables: list[Maintained]
    logs: list[LogRetained]
    cleared: Cleared

    @property
    def refused(self) -> list[str]:
        """Of each table that was left as it is, why."""
        return [
            f"{each.table} is left as it is: {each.refused}"
            for each in self.tables
            if each.refused
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "tables": [each.to_json() for each in self.tables],
            "logs": [each.to_json() for each in self.logs],
            "cleared": asdict(self.cleared),
        }


def levels(
    home: Home, streams: Streams, given: Namespace
) -> dict[str, dict[str, int | None]]:
    """Brings `latest` up to date and takes the snapshots that are due; see `history.taking.bring_up`.

    Args:
        home: the home folder.
        streams: gives the settings.
        given: what `programs.MAINTAIN` takes.
    """
    return bring_up(home, chosen(streams(), given.stream))


def maintain_all(home: Home, conf: Path, streams: Streams, given: Namespace) -> Done:
    """Compacts every table, purges what is older than its retention, deletes what no reader can want any more.

    Queries about a row of a table that was purged are suspended, as where somebody deletes it.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        streams: gives the settings; asked only where there are some, and rows are purged.
        given: what `programs.MAINTAIN` takes.

    Raises:
        ConfigError: a stream is named: tables are maintained together.
    """
    if given.stream:
        raise ConfigError(
            "--stream goes with --levels alone: tables are maintained all together",
            hint="leave it out, or add --levels",
        )
    now_us = time.time_ns() // 1_000
    today = datetime.fromtimestamp(now_us // 1_000_000, UTC).date()
    known = streams() if given.purge and has_streams(conf) else {}
    with upkeep_by(home, given.engine) as upkeep_of:
        maintained = maintain(
            home, today=today, purge=given.purge, streams=known, upkeep_of=upkeep_of
        )
        done = list(maintained)
    logs = list(retain_logs(home, known, now_us=now_us))
    cleared = clear_leftovers(home, conf, today=today) if given.purge else Cleared()
    if known:
        follow_layers(home, lambda: known)  # whose time had come in a table is deleted
    return Done(tables=done, logs=logs, cleared=cleared)
