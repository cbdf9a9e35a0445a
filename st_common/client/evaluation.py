"""What a query gives on a file or a frame, without a home and without settings: both are made for it, and removed."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from st_common.answers.changes import passed_changes
from st_common.answers.places import with_group_places
from st_common.client.evaluated_stream import Given, left_out, read_as, stream_name
from st_common.client.frames import Frame, write_frame
from st_common.client.home_client import HomeClient
from st_common.client.interface import is_select
from st_common.client.result import Result, placed
from st_common.config.home import DEFAULT_GROUP, Home
from st_common.config.stream import StreamSettings
from st_common.engine.run import run
from st_common.engine.summary import RunSummary
from st_common.errors import ConfigError
from st_common.installed import place_of, shipped
from st_common.log.log import Log
from st_common.query.builder import QueryBuilder
from st_common.query.past import time_written
from st_common.query.plan import Plan
from st_common.replay.files import replay
from st_common.replay.source import NamedFile, files_to_read

QUERY = "try"
"""What the query is called, unless its text says otherwise."""
_CHANGES = (
    "query",
    "object",
    "partner",
    "sign",
    "cause",
    "event_ts",
    "position",
    "seq",
    "value",
    "fields",
    "geometry",
)
Query = str | QueryBuilder | Plan


class Evaluation:
    """What a query gives on records: its changes, and its answer at any time.

    It keeps a folder in TMPDIR until it is closed, by `with` or `close()`, or nobody uses it any more.

    Attributes:
        changes: the changes of the answer in their order: `query`, `object`, `partner`, `sign` (+1 enters, -1 leaves, 0
            is about a member that stays), `cause`, `event_ts`, `position`, `seq`, `value`, `fields` (JSON), and
            `geometry`: where the object was.
        notes: what should be looked at: what was guessed, and how many records are left out, and why.
        settings: how the records were read: the keys of a stream in `conf/streams.toml`.
        summary: the counts of the run: `fixes`, `rejects`, `late`, ..
    """

    def __init__(
        self,
        folder: Path,
        client: HomeClient,
        query: str,
        *,
        changes: Result,
        notes: Sequence[str],
        settings: Mapping[str, Any],
        summary: RunSummary,
    ) -> None:
        self._remove = weakref.finalize(self, _removed, folder)
        self._client, self._query = client, query
        self.changes = changes
        self.notes = tuple(notes)
        self.settings = settings
        self.summary = summary

    def at(self, time: datetime | str | None = None) -> Result:
        """The answer at a time.

        Args:
            time: what happened up to then counts: a datetime, or a text of ISO 8601; UTC where it says no zone. None:
                all.

        Returns:
            Rows by object and partner: `object`, `partner`, `since_ts`, `value`, `fields` (JSON), and `geometry`: the
            last fix of the object up to then, null for a group of an aggregate.

        Raises:
            ConfigError: the text is no time, or this is closed.
        """
        if not self._remove.alive:
            raise ConfigError("this evaluation is closed", hint="ask before close()")
        return self._client.answer(self._query, _time_of(time))

    def close(self) -> None:
        """Removes what is kept; `changes` stay."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def evaluate(
    data: Path | str | Frame,
    query: Query,
    *,
    object: str | None = None,  # noqa: A002 - a query calls it so too
    time: str | None = None,
    x: str | None = None,
    y: str | None = None,
    place: str | None = None,
    settings: Mapping[str, Any] | None = None,
    layers: Mapping[str, Path | str] | None = None,
) -> Evaluation:
    """What a query gives on a file or a frame. No home and no settings are needed.

    Columns are found as `fairway check` finds them, or are named; all others are attributes. FROM says `data`, or the
    name of the file without its ending. Rows in any order give the same answers.

    Example:
        >>> import fairway
        >>> port = "SELECT * FROM ships INSIDE (24.945, 60.160, 24.965, 60.168)"
        >>> with fairway.evaluate("sample:ships", port) as seen:
        ...     then = seen.at("2025-06-02T08:30Z")
        ...     print(f"{len(seen.changes)} changes; {len(then)} ships at half past eight")
        24 changes; 2 ships at half past eight

        >>> import pandas as pd
        >>> lorries = pd.DataFrame(
        ...     {
        ...         "lorry": ["a", "b", "a"],
        ...         "seen": ["2025-06-02 08:00Z", "2025-06-02 08:00Z", "2025-06-02 08:05Z"],
        ...         "east": [10.5, 10.9, 11.5],
        ...         "north": [50.1, 50.2, 50.1],
        ...     }
        ... )
        >>> columns = {"object": "lorry", "time": "seen", "x": "east", "y": "north"}
        >>> square = "SELECT * FROM data INSIDE (10, 50, 11, 51)"
        >>> seen = fairway.evaluate(lorries, square, **columns)
        >>> seen.changes.to_pandas()[["object", "cause"]]
          object  cause
        0      a  enter
        1      b  enter
        2      a  leave

    Args:
        data: a file that `fairway check` reads; or a frame of pandas, Polars, GeoPandas or Arrow: anything that gives
            an Arrow stream. `sample:ships` comes with Fairway.
        query: a SELECT, a statement that registers one, or what `fairway.query` builds.
        object: the column of objects.
        time: the column of times.
        x: the column of x, or longitude.
        y: the column of y, or latitude.
        place: the column of points, in place of x and y.
        settings: how else records are read and judged: keys of a stream, as docs/settings.md has them.
        layers: files of features, by the name of the layer that they become.

    Raises:
        ConfigError: the data cannot be read, or a part of a fix is in no column that can be told.
        QueryError: what is wrong with the query.
    """
    named = {"object": object, "event_ts": time, "x": x, "y": y, "place": place}
    given = Given(
        columns={key: name for key, name in named.items() if name is not None},
        settings=settings or {},
        layers=layers or {},
    )
    return evaluate_given(data, query, given)


def evaluate_given(data: Path | str | Frame, query: Query, given: Given) -> Evaluation:
    """The same as `evaluate`, with what was given beside the data in one value."""
    folder = Path(tempfile.mkdtemp(prefix="fairway-try-"))
    try:
        if not isinstance(data, Path | str):
            path, columns, crs = write_frame(data, folder / "data.parquet")
            given = given.beside(columns, crs)
            return _evaluated(folder, [NamedFile(path, "the frame")], query, given)
        with _files(data) as files:
            return _evaluated(folder, files, query, given)
    except BaseException:
        _removed(folder)
        raise


@contextmanager
def _files(data: Path | str) -> Iterator[Sequence[NamedFile]]:
    """The files that a path or the name of a sample means.

    Raises:
        ConfigError: it is an address; or there is no file.
    """
    if "://" in str(data):
        raise ConfigError(
            f"{data} is an address, and a query is tried on a file",
            hint="save it first, or curl -s ADDRESS | fairway try - ..; `fairway check` reads addresses",
        )
    with files_to_read(Path(place_of(str(data)))) as files:
        yield files


def _evaluated(
    folder: Path, files: Sequence[NamedFile], query: Query, given: Given
) -> Evaluation:
    home, name = Home(folder / "home"), stream_name(query, files[0])
    seen, stream = read_as(files, name, given)
    client = HomeClient(home, streams={name: stream}, owner="")
    of_layers = [
        note
        for layer, file in given.layers.items()
        for note in load_layer(home, layer, Path(file), stream)
    ]
    own = QUERY if not isinstance(query, str) or is_select(query) else None
    registered = client.register(query, own).id.name
    paths = [file.path for file in files]
    records = replay(Log(home.log(name)), paths, stream).records
    summary = run(home, stream, until_idle=True)
    return Evaluation(
        folder,
        client,
        registered,
        changes=_changes(home, registered, stream),
        notes=[*seen.notes, *of_layers, *left_out(home, name, records, summary)],
        settings=seen.table,
        summary=summary,
    )


def load_layer(home: Home, layer: str, file: Path, stream: StreamSettings) -> list[str]:
    """Loads a layer in the stream's system, and says what was guessed and what is left out of it.

    Its tables take long to import, and most queries have none.
    """
    from st_common.layers.faults import told
    from st_common.layers.load import load

    conf = shipped("conf")
    report = load(home, layer, file, group=DEFAULT_GROUP, conf=conf, crs=stream.crs)
    faults = told(report.faults, more="")
    return [f"layer {layer}: {note}" for note in (*report.notes, *faults)]


def _changes(home: Home, query: str, stream: StreamSettings) -> Result:
    rows = with_group_places(passed_changes(home, query))
    result = placed(rows, stream.crs)
    return Result(result.table.select(_CHANGES), result.crs)


def _time_of(time: datetime | str | None) -> datetime | None:
    """A time with its zone.

    Raises:
        ConfigError: a text is none.
    """
    if isinstance(time, str):
        try:
            return time_written(time)
        except ValueError:
            raise ConfigError(
                f"{time!r} is no time", hint="such as 2024-05-01T12:30:00Z"
            ) from None
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def _removed(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
