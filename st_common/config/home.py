"""Where everything of one installation lies: one home folder."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from st_common.errors import ConfigError

TOPOLOGY_FILE = "topology.json"
"""In the folder of a stream: what is fixed since it first ran."""
JOINS_FILE = "joins.json"
"""In the folder of a joint stream: how far it has come in the two that it joins."""
DEFAULT_GROUP = "default"
"""The group of streams and layers that say none."""

NAME_PATTERN = "[a-z][a-z0-9_-]{0,62}"
"""What streams, layers, groups and deliveries may be called."""
_NAME = re.compile(NAME_PATTERN)


def checked_name(name: str, what: str) -> str:
    """The name, if it can be a folder's name everywhere.

    It has small letters, digits, `-` and `_`, a letter first, and 63 characters at most.

    Args:
        name: what somebody wrote.
        what: what it is the name of, for the error.

    Raises:
        ConfigError: any other name, so that no name can leave the home folder.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name for a {what}",
            hint="small letters, digits, - and _, a letter first",
        )
    return name


def view_name(part: str) -> str:
    """The name of a stream, a layer or a trial's folder as it stands in names of SQL: `-` and `.` become `_`."""
    return part.replace("-", "_").replace(".", "_")


def require_own_view(name: str, other: str) -> None:
    """Makes sure that a stream, by its name, is the one that came first with its name in SQL.

    Raises:
        ConfigError: it is another one.
    """
    if name != other:
        raise ConfigError(
            f"streams {other!r} and {name!r} would have the same views in SQL",
            hint="give one a name that differs in more than - and _",
        )


@dataclass(frozen=True, slots=True)
class Home:
    """The paths below one home folder; creating nothing by itself.

    Raises:
        ConfigError: the folder's name is no text: tables are found by texts.
    """

    root: Path

    def __post_init__(self) -> None:
        try:
            str(self.root).encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"no home can lie at {str(self.root)!r}, whose name is no UTF-8",
                hint="give a folder whose name is text",
            ) from None

    def stream(self, name: str) -> Path:
        """The folder of a stream: its log, the state of its engines, its lease."""
        return self.root / "streams" / checked_name(name, "stream")

    def log(self, stream: str) -> Path:
        """The folder of a stream's log."""
        return self.stream(stream) / "log"

    def begun_engine(self, stream: str) -> str | None:
        """The engine that a stream was begun on, and runs on; None: it never ran, or what says it is damaged."""
        try:
            record = json.loads((self.stream(stream) / TOPOLOGY_FILE).read_bytes())
        except (OSError, ValueError):
            return None
        engine = record.get("engine") if isinstance(record, dict) else None
        return engine if isinstance(engine, str) else None

    def delivery(self, name: str) -> Path:
        """The folder of a delivery: how far it is, its lease."""
        return self.root / "deliveries" / checked_name(name, "delivery")

    @property
    def judged(self) -> Path:
        """What the supervisor judged at its last look: `ts`, us since 1970, and healths by stream and by delivery."""
        return self.root / "judged.json"

    @property
    def reports(self) -> Path:
        """The folder of all reports, in a folder for each kind."""
        return self.root / "reports"

    def table(self, name: str, part: str | None = None) -> Path:
        """The folder of a Delta table.

        Args:
            name: the table, such as `regions`.
            part: of a table that there is for each stream or layer, which one: `table("changes", "taxis")`,
                `table("layers", "parks")`.

        Raises:
            ConfigError: one of the names cannot be a folder's.
        """
        path = self.root / "tables" / checked_name(name, "table")
        return path if part is None else path / checked_name(part, name)
