"""Contracts that were found valid as they are: a process that reads one need not check it again.

`make contracts` checks all of them and keeps the SHA-256 of each in `checked.json` beside them. One that was changed
since, or that lies in a folder without such a file, is checked by each process that reads it: slow, and never wrong.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FILE = "checked.json"


def is_checked(path: Path) -> bool:
    """Whether a contract was found valid with the bytes that its file has now."""
    return _kept(path.parent).get(path.name) == _sum_of(path)


def text_of(paths: Iterable[Path]) -> str:
    """The text of the file that says of contracts in one folder that they are valid, by the names of their files."""
    sums = {path.name: _sum_of(path) for path in sorted(paths)}
    return json.dumps(sums, indent=2) + "\n"


@cache
def _kept(folder: Path) -> dict[str, str]:
    """The sums by the names of files; none where nothing says any."""
    try:
        kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
