"""The tables that a home holds, with what they take of its disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import Contract, contract_names, load_contract
from st_common.storage import bytes_below
from st_common.tables.handle import required


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
        if tables.exists(folder):
            yield Stored(contract=contract, part=None, path=folder)
            continue
        # Behind a dot lies what `streams reset` has taken away.
        for path in sorted(filter(tables.exists, folder.glob("[!.]*"))):
            yield Stored(contract=contract, part=path.name, path=path)
    for path in sorted(filter(tables.exists, home.table("trials").glob("[!.]*"))):
        stream, _, trial = path.name.partition(".")
        yield Stored(
            contract=load_contract("visits"), part=stream, path=path, trial=trial
        )


def size_of(path: Path) -> Size:
    """What the table in a folder takes now.

    Raises:
        FairwayError: there is no table.
    """
    files = pa.table(required(path).get_add_actions())
    return Size(files=len(files), bytes=bytes_below(path))
