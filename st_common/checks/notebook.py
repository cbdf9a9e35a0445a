"""What a run of `verify` has found of each query, and the notebook by which the next one goes on from there.

    streams/S/verified.json    {"key": .., "end": .., "done": {query: what was found}}

It counts as long as what it was found of is the same: every change and every event before `end`, and the queries that
were registered there. More of the log changes nothing: the next run verifies up to the same place.
"""

import hashlib
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from st_common.checks.history import Registered, Times
from st_common.errors import StorageError
from st_common.operations.records import read_record, write_record

NOTES = "verified.json"
_CHANGES = ["position", "seq", "query", "object", "partner", "sign", "cause", "value"]
_EVENTS = ["position", "object", "ts", "x", "y", "kind", "effect"]
_EVERY_S = 1.0  # between two writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found of one query at a log position: members missing from its answer, members too many, wrong places.

    A group of an aggregate that has another value is both, and so is a member that was told another VALID UNTIL. Metres
    on degrees are measured in two ways that differ by up to 0.01 %: average speeds may differ by that, and objects of
    which a fix is in doubt by more. Not `checked` are other values over members that are in doubt. Of a fence all
    events count, also those that lead to no answer, but for visits that are in doubt. `misplaced` are changes that say
    another place than the fixes do (ADR 92). `unchecked` says what was not looked at, or why. `members` is None where
    the answer was not looked at. Of the `fixes` of the stream so many are `late`: they are in no answer, nor in what
    it is compared with.
    """

    query: str
    position: int
    members: int | None
    missing: int
    extra: int
    misplaced: int = 0
    checked: bool = True
    unchecked: str = ""
    fixes: int = 0
    late: int = 0
    failed: bool = False

    @property
    def holds(self) -> bool:
        """Whether the folded changes equal the brute force, and their places those of fixes."""
        return not (self.missing or self.extra or self.misplaced or self.failed)


@dataclass(slots=True)
class Notebook:
    """What was found of queries so far, kept in the home.

    Attributes:
        path: the file.
        done: what was found, by query.
        begun: whether it was begun anew, for what was found before is of something else.
        before: of how many queries something had been found.
    """

    path: Path
    done: dict[str, Verified] = field(default_factory=dict)
    begun: bool = True
    before: int = 0
    _key: str = ""
    _end: int = 0
    _written_s: float = 0.0

    @staticmethod
    def of(folder: Path, *, goes_on: bool) -> "Notebook":
        """That of a stream, by its folder; empty unless it goes on with what was found before."""
        notebook = Notebook(folder / NOTES)
        noted = read_record(notebook.path) if goes_on else None
        if noted is not None:
            notebook._key, notebook._end = noted["key"], noted["end"]
            notebook.done = {
                name: Verified(**one) for name, one in noted["done"].items()
            }
        return notebook

    def end(self, reached: int) -> int:
        """Up to which position is verified: as before, when the tables reach as far."""
        return self._end if self.done and self._end <= reached else reached

    def open(
        self,
        end: int,
        since: int,
        times: Times,
        frame: pd.DataFrame,
        changes: pd.DataFrame,
        registered: Mapping[str, Registered],
    ) -> None:
        """Keeps what was found before if it was of the very same rows and queries; else nothing."""
        key = _key_of(end, since, times, frame, changes, registered)
        self.begun = key != self._key
        self.before = len(self.done)
        if self.begun:
            self.done = {}
        self._key, self._end = key, end

    def said(self) -> str:
        """In words what of it was found before."""
        if not self.before:
            return "nothing was verified before"
        if self.begun:
            return "what was verified before has changed: verified anew"
        return f"{self.before} queries were verified before, up to the same place"

    def note(self, one: Verified) -> None:
        """Takes down what was found of a query; on the disk at most once a second."""
        self.done[one.query] = one
        if time.monotonic() - self._written_s >= _EVERY_S:
            self.write_if_open()

    def write_if_open(self) -> None:
        """Puts all of it on the disk, if something was found; where nothing can be written it is not kept."""
        if self._key and self.done:
            self._written_s = time.monotonic()
            with suppress(StorageError, OSError):
                self._write()

    def _write(self) -> None:
        done = {name: asdict(one) for name, one in self.done.items()}
        noted = {"key": self._key, "end": self._end, "done": done}
        write_record(self.path, noted)


def _key_of(
    end: int,
    since: int,
    times: Times,
    frame: pd.DataFrame,
    changes: pd.DataFrame,
    registered: Mapping[str, Registered],
) -> str:
    """A checksum of everything that answers are compared with."""
    digest = hashlib.blake2b(f"{end} {since} {times}".encode(), digest_size=16)
    attributes = [name for name in frame if str(name).startswith("@")]
    parts = ((changes, _CHANGES), (frame, [*_EVENTS, *attributes]))
    for rows, columns in parts:
        hashed = pd.util.hash_pandas_object(rows[columns], index=False)
        digest.update(np.sort(hashed.to_numpy()).tobytes())
    for name, query in sorted(registered.items()):
        digest.update(repr((name, query)).encode())
    return digest.hexdigest()
