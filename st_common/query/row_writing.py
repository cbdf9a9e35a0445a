"""Writes control rows of queries into the logs of their streams, with files of the registry: all of them or none."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain

from st_common.config.home import Home
from st_common.errors import QueryError
from st_common.log.log import Log, Segment
from st_common.position import position_of
from st_common.query.commit import commit
from st_common.query.control import QueryRow, encoded, payloads
from st_common.query.lookup import layers

Seeding = Callable[[QueryRow, int], str]
"""Finds what a query knows of its stream's log before a segment, and gives the id by which it is kept."""


def write_rows(
    home: Home,
    rows: Sequence[QueryRow],
    arrival_us: int,
    files: Mapping[str, bytes],
    seeding: Seeding | None = None,
    before_writing: Callable[[], None] | None = None,
) -> list[QueryRow]:
    """Writes rows into the logs of their streams, and files of the registry; gives the rows with their positions.

    What rows with a beginning know of the log is found while it is locked: up to the very segment that they stand in.

    The registry must be locked. The logs stay locked from reading the layers' versions to writing: so a version that is
    loaded meanwhile is announced after the rows, and no query keeps an old one. `before_writing` is called when all is
    known that is to be written.
    """
    logs = {
        stream: Log(home.log(stream)) for stream in sorted({row.stream for row in rows})
    }
    with ExitStack() as locks:
        for log in logs.values():
            locks.enter_context(log.locked())
        pinned = _seeded(logs, _pinned(home, rows), files, seeding)
        parts = {
            stream: payloads(encoded(row) for row in pinned if row.stream == stream)
            for stream in logs
        }
        if before_writing is not None:
            before_writing()
        return _placed(
            pinned, parts, commit(home, logs, parts, arrival_us=arrival_us, files=files)
        )


def _seeded(
    logs: Mapping[str, Log],
    rows: Sequence[QueryRow],
    files: Mapping[str, bytes],
    seeding: Seeding | None,
) -> list[QueryRow]:
    """The rows, those with a beginning with what they know of the log.

    Raises:
        QueryError: they are not written at once, in one segment: somebody else could write between them.
    """
    if all(row.beginning is None for row in rows):
        return list(rows)
    if seeding is None:
        raise QueryError(
            "FROM is for `fairway query register`, the shell and the client",
            hint="nobody here reads the log",
        )
    if len(logs) > 1 or files:
        raise QueryError(
            "a text with REGISTER .. FROM is about one stream, and changes no areas",
            hint="put it into a text of its own",
        )
    (log,) = logs.values()
    end = log.end()
    seeded = [
        row if row.beginning is None else replace(row, seed=seeding(row, end))
        for row in rows
    ]
    if len(payloads(map(encoded, seeded))) > 1:
        raise QueryError(
            "a text with REGISTER .. FROM fits into one segment (16 MiB)",
            hint="put it into a text of its own",
        )
    return seeded


def _pinned(home: Home, rows: Sequence[QueryRow]) -> list[QueryRow]:
    """The rows, each with the newest version of the layer that it joins."""
    joins = [row.plan.join if row.plan else None for row in rows]
    if not any(joins):
        return list(rows)
    newest = layers(home)
    return [
        row if join is None else replace(row, layer_version=newest.get(join.layer))
        for row, join in zip(rows, joins, strict=True)
    ]


def _placed(
    rows: Sequence[QueryRow],
    parts: Mapping[str, Sequence[bytes]],
    segments: Mapping[str, Sequence[Segment]],
) -> list[QueryRow]:
    """The rows with the positions that their lines got."""
    positions = {
        stream: chain.from_iterable(
            range(
                position_of(segment.number, 0),
                position_of(segment.number, payload.count(b"\n")),
            )
            for segment, payload in zip(segments[stream], of_stream, strict=True)
        )
        for stream, of_stream in parts.items()
    }
    return [row.at(next(positions[row.stream])) for row in rows]
