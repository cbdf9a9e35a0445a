"""The commits by which an engine has brought changes into a table, as far as the table's log still has them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from st_common.engine.committing import APP


class Commit(NamedTuple):
    """A commit of an engine.

    Attributes:
        version: of the table.
        position: the place in the log up to which it has brought changes.
        stamp_ms: when it was made, ms since 1970; None when it does not say so.
    """

    version: int
    position: int
    stamp_ms: int | None


def has_first(path: Path) -> bool:
    """Whether the first commit of a table is still in its log: what earlier ones brought is known then."""
    return (path / "_delta_log" / f"{0:020d}.json").exists()


def engine_commits(path: Path) -> Iterator[Commit]:
    """The engine's commits to a table, by version. Those of others (compactions, purges) are passed over.

    Args:
        path: the folder of the table.
    """
    for each in sorted((path / "_delta_log").glob("[0-9]*.json")):
        actions: list[dict[str, Any]] = [
            json.loads(line)
            for line in each.read_bytes().splitlines()  # a text would end at U+2028 too
            if line
        ]
        reached = [
            action["txn"]["version"]
            for action in actions
            if "txn" in action and action["txn"]["appId"] == APP
        ]
        stamps = [
            action["commitInfo"]["timestamp"]
            for action in actions
            if "commitInfo" in action
        ]
        if reached:
            yield Commit(int(each.stem), reached[0], stamps[0] if stamps else None)
