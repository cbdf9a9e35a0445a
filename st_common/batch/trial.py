"""Days processed with other questions than those of the log: what would have been told, had they been asked before.

log          register q version 1   fixes   replace q by version 2   fixes   layer parks 7   fixes
trial        register r             fixes                            fixes   layer parks 7   fixes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from st_common.config.home import Home, checked_name, view_name
from st_common.controls.reading import rows_of
from st_common.controls.rows import (
    AboutQuery,
    ControlRow,
    LayerVersion,
    Register,
    Registration,
)
from st_common.controls.writing import payload_of
from st_common.errors import ConfigError
from st_common.layers.table import is_purged
from st_common.query.lookup import layers
from st_common.query.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Other queries, or layers in other versions.

    Attributes:
        name: of the trial: its visits go into `tables/trials/STREAM.NAME`.
        queries: plans by name, registered before all fixes in the place of the log's queries; empty: those of the log.
        versions: of layers by name, the version that counts from beginning to end; of others the log says it.
    """

    name: str
    queries: Mapping[str, Plan] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses names that can be no folder's.

        Raises:
            ConfigError: this one.
        """
        checked_name(self.name, "trial")

    def described(self) -> str:
        """All that decides what it comes to, as text."""
        plans = {name: plan.to_json() for name, plan in self.queries.items()}
        return f"{self.name} {plans} {dict(self.versions)}"

    def layers(self, home: Home) -> Mapping[str, int]:
        """The versions of layers that count in it, as far as the log does not say it.

        Args:
            home: where the tables of layers lie: of one whose version is not said the newest counts for its queries.
        """
        return {**(layers(home) if self.queries else {}), **self.versions}

    def registrations(self, home: Home) -> bytes:
        """The rows that register its queries, as bytes; empty where the log's queries count.

        Args:
            home: where the tables of layers lie: of one whose version is not said the newest counts.
        """
        newest = self.layers(home) if self.queries else {}
        return payload_of(
            Register(
                query=name,
                version=1,
                plan=plan.to_json(),
                layer_version=None
                if plan.join is None
                else newest.get(plan.join.layer),
            )
            for name, plan in self.queries.items()
        )

    def changed(self, payload: bytes, *, stream: str, segment: int) -> bytes:
        """A control segment of the log as the trial has it; empty where nothing of it counts.

        Args:
            payload: its bytes.
            stream: the name of the stream, for errors.
            segment: its number, for errors.

        Raises:
            LogError: a row that this version does not know.
        """
        rows = rows_of(payload, stream=stream, segment=segment)
        return payload_of(map(self._pinned, self._counting(rows)))

    def _counting(self, rows: Sequence[ControlRow]) -> list[ControlRow]:
        return [
            row
            for row in rows
            if not (self.queries and isinstance(row, AboutQuery))
            and not (isinstance(row, LayerVersion) and row.layer in self.versions)
        ]

    def _pinned(self, row: ControlRow) -> ControlRow:
        """The row, with the version of its layer that the trial says."""
        if not isinstance(row, Registration):
            return row
        layer = str((row.plan.get("join") or {}).get("layer"))
        if layer not in self.versions:
            return row
        return replace(row, layer_version=self.versions[layer])


def trial_table(home: Home, stream: str, name: str) -> Path:
    """The folder of a trial's table. No stream and no trial has a dot in its name, so no two have the same one.

    Raises:
        ConfigError: another trial's view would have the same name in SQL.
    """
    both = (checked_name(stream, "stream"), checked_name(name, "trial"))
    path = home.table("trials") / ".".join(both)
    for other in sorted(home.table("trials").glob("[!.]*")):
        if other != path and view_name(other.name) == view_name(path.name):
            raise ConfigError(
                f"trial {name!r} of stream {stream!r} would have the view of the trial in {other}",
                hint="another name after --into",
            )
    return path


def trial_tables(home: Home, stream: str) -> list[Path]:
    """The folders of the tables of a stream's trials."""
    return sorted(home.table("trials").glob(f"{stream}.*"))


def versions_of(home: Home, texts: Sequence[str]) -> dict[str, int]:
    """The versions of layers that options name.

        ["parks@7"]   ->   {"parks": 7}

    Args:
        home: where the tables of layers lie.
        texts: each NAME@VERSION.

    Raises:
        ConfigError: one of another form, or of a layer or version that is not there, or not any more.
    """
    newest, versions = layers(home), {}
    for text in texts:
        name, _, number = text.partition("@")
        if name not in newest or not number.isdecimal():
            raise ConfigError(
                f"--layers {text!r} is no version of a layer",
                hint="such as parks@7; `fairway layer list` names them",
            )
        if int(number) > newest[name]:
            raise ConfigError(
                f"layer {name!r} has no version {number}",
                hint=f"the newest is {newest[name]}",
            )
        if is_purged(home, name, int(number)):
            raise ConfigError(
                f"version {number} of layer {name!r} was purged",
                hint="nothing needed it; a newer one can be named",
            )
        versions[name] = int(number)
    return versions
