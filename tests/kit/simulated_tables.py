"""What `st_common.tables` is to a local engine, on a simulated disk: one table of changes.

It keeps what the real one promises, by the same order of writes: data files are durable before a commit names them, the
version before a commit is durable too, a commit is the first to have its number, and is durable when `append` returns.
What Delta's writer makes is visible before it is synced, so a power cut may tear it.

    tables/changes/S/data/PID-N           the rows of a commit
    tables/changes/S/log/00000007         the app's version that it reaches, the name and the length of its rows
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import ConflictError, FairwayError, TransientError
from st_common.storage import make_folder
from st_common.tables.tail import Added
from tests.kit.simulated_disk import SimulatedDisk
from tests.kit.simulated_path import SimulatedPath
from tests.kit.simulated_system import System

if TYPE_CHECKING:
    from pathlib import Path

_TRIES = 5
_DOUBTED = 8  # see `st_common.tables.durable`


class SimulatedTables:
    """The functions of `st_common.tables` that an engine calls."""

    with_date = staticmethod(tables.with_date)

    def __init__(self, disk: SimulatedDisk, system: System) -> None:
        self._disk, self._system = disk, system
        self._synced: dict[
            tuple[int, SimulatedPath], int
        ] = {}  # by the process that has synced so far
        self._files = 0

    def committed(self, path: SimulatedPath, _app: str) -> int | None:
        """See `tables.committed`."""
        newest = self._newest(path)
        return None if newest < 0 else int(self._commit(path, newest)["version"])

    def append(
        self,
        path: SimulatedPath,
        data: pa.Table,
        _contract: object,
        *,
        app: str,
        version: int,
        after: int,
        check: Callable[[], None] | None,
        notes: Mapping[str, int],
        files: Sequence[object] = (),
    ) -> bool:
        """See `tables.append`; nobody writes files by himself here."""
        if files:
            raise NotImplementedError("files that others have written")
        with self._locked(path):
            for _ in range(_TRIES):
                newest = self._newest(path)
                if check is not None:
                    check()
                self.require_at(path, newest, app=app, after=after)
                self._sync_before(path, newest)
                commit = {"version": version, "notes": {**notes}}
                commit |= self._store(path, data)
                if self._link(path, newest + 1, commit):
                    self._sync(path)
                    return True
        raise TransientError(f"{path}: {_TRIES} commits failed")

    def require_at(
        self, path: SimulatedPath, newest: int, *, app: str, after: int
    ) -> None:
        """Compare-and-set: the app stands where its owner thinks.

        Raises:
            ConflictError: it does not.
        """
        stands = -1 if newest < 0 else int(self._commit(path, newest)["version"])
        if stands != after:
            raise ConflictError(f"{app} stands at {stands}, not at {after}")

    def compact(self, *_: object, **__: object) -> None:
        """Files are few here."""

    def recover(self, path: SimulatedPath) -> None:
        """See `tables.recover`: versions that are torn are cut off.

        Raises:
            FairwayError: one is torn or missing, and a later one is not.
        """
        with self._locked(path):
            versions = self._versions(path)
            whole = [number for number in versions if self._is_whole(path, number)]
            if whole != list(range(len(whole))):
                raise FairwayError(
                    f"{path}: of the versions {versions} only {whole} are whole"
                )
            for number in reversed(versions[len(whole) :]):
                (path / "log" / _name(number)).unlink()
                self._system.fsync(self._system.open(path / "log", 0))
            self._sync_before(path, len(whole) - 1)

    def restore(self, path: SimulatedPath, versions: int) -> None:
        """Puts an older copy in the place of the table: with so many of its versions."""
        for number in self._versions(path)[versions:]:
            (path / "log" / _name(number)).unlink()
            self._system.fsync(self._system.open(path / "log", 0))

    def tail(self, path: SimulatedPath, _order: str) -> "SimulatedTail":
        """See `tables.tail.Tail`."""
        return SimulatedTail(self, path)

    def ranges(self, path: SimulatedPath, *_: str) -> dict[str, tuple[int, int]]:
        """See `tables.ranges`, of positions."""
        files = self.tail(path, "position").added(-1)
        ends = [(one.least, one.greatest) for one in files]
        return {"position": (min(ends)[0], max(ends)[1])} if ends else {}

    def added(self, path: SimulatedPath, number: int) -> list[Added]:
        """The file of rows that a version has added; none when it has none."""
        commit = self._commit(path, number)
        if not commit["data"]:
            return []
        rows = self.read(path, commit["data"])
        ends = pc.min_max(rows["position"]).as_py()
        return [
            Added(
                path=commit["data"],
                values={},
                rows=len(rows),
                least=ends["min"],
                greatest=ends["max"],
            )
        ]

    def read(self, path: SimulatedPath, name: str) -> pa.Table:
        """The rows of a file."""
        return pa.ipc.open_stream((path / "data" / name).read_bytes()).read_all()

    def versions(self, path: SimulatedPath) -> int:
        """How many versions there are."""
        return len(self._versions(path))

    def rows(self, path: SimulatedPath) -> list[dict[str, Any]]:
        """All rows, in the order of their commits."""
        commits = [self._commit(path, number) for number in self._versions(path)]
        rows = [
            (path / "data" / commit["data"]).read_bytes()
            for commit in commits
            if commit["data"]
        ]
        return [
            row
            for data in rows
            for row in pa.ipc.open_stream(data).read_all().to_pylist()
        ]

    @contextmanager
    def _locked(self, path: SimulatedPath) -> Iterator[None]:
        make_folder(cast("Path", path.parent))
        lock = self._system.open(path.parent / f".{path.name}.lock", System.O_CREAT)
        self._system.flock(lock, System.LOCK_EX)
        try:
            yield
        finally:
            self._system.flock(lock, System.LOCK_UN)

    def _versions(self, path: SimulatedPath) -> list[int]:
        self._disk.world.glance()
        names = (
            self._disk.names(str(path / "log"))
            if self._disk.inode(str(path / "log"))
            else []
        )
        return sorted(int(name) for name in names if name.isdigit())

    def _newest(self, path: SimulatedPath) -> int:
        return max(self._versions(path), default=-1)

    def _commit(self, path: SimulatedPath, number: int) -> dict[str, Any]:
        try:
            return dict(json.loads((path / "log" / _name(number)).read_bytes()))
        except ValueError as error:
            raise FairwayError(
                f"{path} cannot be opened: version {number} is torn"
            ) from error

    def _is_whole(self, path: SimulatedPath, number: int) -> bool:
        try:
            commit = self._commit(path, number)
            data = (
                (path / "data" / commit["data"]).read_bytes() if commit["data"] else b""
            )
        except (FairwayError, FileNotFoundError):
            return False
        return (len(data) == commit["size"] and data.strip(b"\0") != b"") or not commit[
            "data"
        ]

    def _store(self, path: SimulatedPath, data: pa.Table) -> dict[str, Any]:
        """Writes rows and makes them durable: what a commit says of them."""
        if not len(data):
            return {"data": "", "size": 0}
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, data.schema) as writer:
            writer.write_table(data)
        body = sink.getvalue().to_pybytes()
        self._files += 1
        file = path / "data" / f"{self._system.getpid()}-{self._files}"
        make_folder(cast("Path", file.parent))
        self._write(file, body)
        self._system.fsync(file.open("rb"))
        for folder in (path / "data", path, path.parent):
            self._system.fsync(self._system.open(folder, 0))
        return {"data": file.name, "size": len(body)}

    def _link(self, path: SimulatedPath, number: int, commit: dict[str, Any]) -> bool:
        """Whether the commit was the first with its number; visible, and durable not yet."""
        draft, final = (
            path / "log" / f".{self._system.getpid()}",
            path / "log" / _name(number),
        )
        make_folder(cast("Path", final.parent))
        self._write(draft, json.dumps(commit).encode())
        try:
            self._system.link(draft, final)
        except FileExistsError:
            return False
        return True

    def _sync_before(self, path: SimulatedPath, newest: int) -> None:
        """See `tables.durable.sync_before`: no version follows one that may be lost."""
        if newest >= 0 and self._synced.get(self._process(path)) != newest:
            self._sync(path)

    def _sync(self, path: SimulatedPath) -> None:
        """See `tables.durable.sync_log`: the newest versions, whoever made them."""
        newest, process = self._newest(path), self._process(path)
        for number in range(
            max(self._synced.get(process, newest - _DOUBTED), -1) + 1, newest + 1
        ):
            self._system.fsync((path / "log" / _name(number)).open("rb"))
        for folder in (path / "log", path, path.parent):
            self._system.fsync(self._system.open(folder, 0))
        self._synced[process] = newest

    def _process(self, path: SimulatedPath) -> tuple[int, SimulatedPath]:
        return (self._disk.world.here.serial if self._disk.world.here else -1, path)

    def _write(self, path: SimulatedPath, data: bytes) -> None:
        with path.open("wb") as file:
            file.write(data)


class SimulatedTail:
    """What `Tail` is on a simulated disk."""

    def __init__(self, tables: SimulatedTables, path: SimulatedPath) -> None:
        self._tables, self._path, self._seen = tables, path, 0

    def added(self, after: int) -> list[Added]:
        """See `Tail.added`."""
        numbers = range(self._seen, self._tables.versions(self._path))
        files = [
            one for number in numbers for one in self._tables.added(self._path, number)
        ]
        self._seen = numbers.stop
        return sorted(
            (one for one in files if one.greatest >= after),
            key=lambda one: one.greatest,
        )

    def start_again(self) -> None:
        """See `Tail.start_again`."""
        self._seen = 0

    def read(
        self, files: Sequence[Added], schema: pa.Schema, keep: pc.Expression
    ) -> pa.Table:
        """See `Tail.read`."""
        parts = [self._tables.read(self._path, one.path) for one in files]
        rows = tables.with_date(pa.concat_tables(parts), load_contract("changes"))
        rows = rows.select(schema.names)
        return rows.filter(keep).cast(schema)


def _name(number: int) -> str:
    return f"{number:08d}"
