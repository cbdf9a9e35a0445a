"""The tables that a home holds, with what they take of its disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import Contract, contract_names, load_contract
from st_common.errors import TableError
from st_common.storage import bytes_below
from st_common.tables.foreign import (
    require_kept,
    require_readable,
    require_writable,
    unsupported,
)
from st_common.tables.handle import required
from st_common.tables.shape import gained


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A table of a home.

    Attributes:
        contract: what it promises.
        part: the stream or layer that it is of; None: there is one of its kind.
        path: its folder.
        trial: whose visits it holds; "" of what the stream itself has.
    """

    contract: Contract
    part: str | None
    path: Path
    trial: str = ""

    @property
    def label(self) -> str:
        """Its name for people: `positions/taxis`, `rejects`, `trials/taxis.wider`."""
        if self.trial:
            return f"trials/{self.path.name}"
        return "/".join(filter(None, (self.contract.name, self.part)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a table takes.

    Attributes:
        files: data files of its newest version.
        bytes: on the disk: these, files of older versions, and its log of commits.
    """

    files: int
    bytes: int


def stored_tables(home: Home) -> Iterator[Stored]:
    """The tables of a home that have a contract, by name, then by part; then those of trials, which hold visits."""
    for name in contract_names():
        contract, folder = load_contract(name), home.table(name)
        if _is_there(folder):
            yield Stored(contract=contract, part=None, path=folder)
            continue
        # Behind a dot lies what `streams reset` has taken away.
        for path in sorted(filter(_is_there, folder.glob("[!.]*"))):
            yield Stored(contract=contract, part=path.name, path=path)
    for path in sorted(filter(_is_there, home.table("trials").glob("[!.]*"))):
        stream, _, trial = path.name.partition(".")
        yield Stored(
            contract=load_contract("visits"), part=stream, path=path, trial=trial
        )


def _is_there(path: Path) -> bool:
    """Whether there is a table; one that cannot be opened is there, and who works on it is told why."""
    try:
        return tables.exists(path)
    except TableError:
        return True


def refused_tables(home: Home) -> Iterator[tuple[Stored, TableError]]:
    """The tables of a home that another program has altered so that they are not read or written here.

    Yields:
        Each with its error, which says what cures it.
    """
    for stored in stored_tables(home):
        try:
            table = required(stored.path)
            require_readable(stored.path, table)
            require_writable(stored.path, table, takes_out=True)
            columns = pa.schema(table.schema().to_arrow())
            require_kept(stored.path, table, gained(columns, stored.contract))
        except TableError as error:
            # A log that is torn is damage, which is looked for by itself (`engine.recovery`).
            if error.__cause__ is None or unsupported(error.__cause__):
                yield stored, error


def unread_tables(home: Home) -> Iterator[tuple[Stored, TableError]]:
    """The tables of a home of which rows cannot be read: altered by another program, torn, or without some file.

    What files hold is not looked at, but for their lengths and ends.

    Yields:
        Each with its error, which says what to do.
    """
    for stored in stored_tables(home):
        try:
            require_readable(stored.path, required(stored.path))
            _require_files(stored.path)
        except TableError as error:
            yield stored, error


def _require_files(path: Path) -> None:
    if missing := tables.damaged_files(path):
        raise TableError(
            f"{path / min(missing)} is missing or cut",
            hint="`fairway doctor --repair` makes it again from the log, if that goes back so far; or an older backup",
        )


def size_of(path: Path) -> Size:
    """What the table in a folder takes now.

    Raises:
        FairwayError: there is no table, or it cannot be opened.
    """
    files = pa.table(required(path).get_add_actions())
    return Size(files=len(files), bytes=bytes_below(path))
