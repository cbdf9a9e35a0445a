"""Queries in the control rows of a stream's log: rows with plans in them to bytes, and back in log order."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Literal

from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import (
    AboutQuery,
    ControlRow,
    Drop,
    Fail,
    Follow,
    QueryOp,
    Register,
    Registration,
    Replace,
)
from st_common.controls.writing import registration_to_bytes, to_bytes
from st_common.errors import LogError
from st_common.log.control import control_rows
from st_common.log.log import SEGMENT_LIMIT, Log, Segment
from st_common.position import position_of, row_of, segment_of
from st_common.query.past import Beginning
from st_common.query.plain import plan_text
from st_common.query.plan import Box, Plan
from st_common.query.plan_words import check_words

Op = QueryOp
_KINDS: dict[Op, type[Register | Replace | Follow]] = {
    kind.op: kind for kind in (Register, Replace, Follow)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One control row of a query: where it stands in which log, and what it did.

    `version` of a drop is the version that it dropped; its plan, text and owner are None. `arrival_us` is when the row
    was written (UTC microseconds). `layer_version` is the version of the joined layer that the query starts with.
    A row `fail` says that the query is judged no more, and `why`; its plan, text and owner are None. What is registered
    by a name has the `why` of the row `fail` after it. `areas` are those that its text names; after a row `follow` its
    plan has another region of one of them, or of a feature of `layer`, which was loaded anew then. `seed` is what a
    registration knows of the log before it; `beginning` is from where on it wants to, while nothing is written yet.
    """

    name: str
    version: int
    op: Op
    stream: str
    position: int
    arrival_us: int
    plan: Plan | None = None
    text: str | None = None
    owner: str | None = None
    layer_version: int | None = None
    why: str | None = None
    areas: tuple[str, ...] = ()
    layer: str | None = None
    seed: str | None = None
    beginning: Beginning | None = None

    def at(self, position: int) -> "QueryRow":
        """The same row at its place in the log."""
        return QueryRow(  # by hand: `replace` takes five times as long, which a million rows feel
            name=self.name,
            version=self.version,
            op=self.op,
            stream=self.stream,
            position=position,
            arrival_us=self.arrival_us,
            plan=self.plan,
            text=self.text,
            owner=self.owner,
            layer_version=self.layer_version,
            why=self.why,
            areas=self.areas,
            layer=self.layer,
            seed=self.seed,
            beginning=self.beginning,
        )

    @property
    def live(self) -> bool:
        """Whether the query is registered after this row; one that failed is, until somebody drops or replaces it."""
        return self.op != "drop"

    @property
    def state(self) -> Literal["registered", "failed", "dropped"]:
        """What became of the query."""
        return (
            "dropped"
            if not self.live
            else "registered"
            if self.why is None
            else "failed"
        )


def encoded(row: QueryRow) -> bytes:
    """The row as a line of a control segment, with its newline.

    Raises:
        ValueError: a registration without a plan.
    """
    if row.op == "drop":
        return to_bytes(Drop(query=row.name))
    if row.op == "fail":
        return to_bytes(Fail(query=row.name, version=row.version, why=row.why))
    if row.plan is None:
        raise ValueError(f"{row.op} of {row.name!r} has no plan")
    return registration_to_bytes(
        _KINDS[row.op],
        query=row.name,
        version=row.version,
        plan_json=plan_text(row.plan),
        text=row.text,
        owner=row.owner,
        layer_version=row.layer_version,
        areas=row.areas,
        followed=row.layer,
        seed=row.seed,
    )


def payloads(lines: Iterable[bytes]) -> list[bytes]:
    """The lines in as few control segments as hold them."""
    parts: list[bytes] = []
    part: list[bytes] = []
    size = 0
    for line in lines:
        if size + len(line) >= SEGMENT_LIMIT and part:
            parts.append(b"".join(part))
            part, size = [], 0
        part.append(line)
        size += len(line)
    return [*parts, b"".join(part)] if part else parts


def plan_of(row: Registration, position: int) -> Plan:
    """The plan of a registration that stands at a position of its stream's log.

    Raises:
        LogError: a part of it is missing or of another form, or is nothing that this version knows.
    """
    try:
        plan = Plan.from_json(row.plan)
        check_words(plan)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        number, stream = row_of(position) + 1, row.plan["stream"]
        raise LogError(
            f"segment {segment_of(position)} of stream {stream}: row {number} is no control row: "
            f"the plan of query {row.query!r} has a part that is unknown, or lacks one: {error}",
            hint="a newer version of Fairway wrote it: go on with that version; else restore the segment from a copy",
        ) from error
    return plan


def plans_of(rows: Rectangles) -> list[Plan]:
    """The plans of registrations that stand in columns, in their order: equal to those of reading row by row."""
    return [
        Plan(
            stream=intern(stream),  # one text for a million plans
            inside=Box(minx=minx, miny=miny, maxx=maxx, maxy=maxy),
        )
        for stream, (minx, miny, maxx, maxy) in zip(
            rows.streams, rows.corners.tolist(), strict=True
        )
    ]


def rows_of(home: Home, stream: str) -> Iterator[QueryRow]:
    """The query rows of a stream's log, in log order; other control rows are passed over.

    Raises:
        LogError: a control row that this version does not know, or a drop of a query that is none.
    """
    log, versions = Log(home.log(stream)), dict[str, int]()
    for segment in log.control_segments(0):
        yield from query_rows(control_rows(log, segment), stream, segment, versions)


def query_rows(
    rows: Sequence[ControlRow],
    stream: str,
    segment: Segment,
    versions: MutableMapping[str, int],
    *,
    brief: bool = False,
) -> Iterator[QueryRow]:
    """The query rows among those of a control segment.

    `versions` are those of the live queries before it, by name (a drop does not carry its version); they are kept up
    to date. `brief` rows have no plan: making those of a hundred thousand takes seconds.

    Raises:
        LogError: a drop of a query that is none, or a plan that cannot be made.
    """
    for number, row, version in numbered(rows, stream, segment, versions):
        yield query_row(row, version, stream, segment, number, brief=brief)


def query_row(
    row: AboutQuery,
    version: int,
    stream: str,
    segment: Segment,
    number: int,
    *,
    brief: bool = False,
) -> QueryRow:
    """A row of a control segment with its place; of a drop, `version` is the one that it ends."""
    position = position_of(segment.number, number)
    if not isinstance(row, Registration):
        return QueryRow(
            name=row.query,
            version=version,
            op=row.op,
            stream=stream,
            position=position,
            arrival_us=segment.arrival_us,
            why=row.why if isinstance(row, Fail) else None,
        )
    return QueryRow(
        name=row.query,
        version=version,
        op=row.op,
        stream=stream,
        position=position,
        arrival_us=segment.arrival_us,
        plan=None if brief else plan_of(row, position),
        text=row.text,
        owner=row.owner,
        layer_version=row.layer_version,
        areas=row.areas,
        layer=row.layer if isinstance(row, Follow) else None,
        seed=row.seed if isinstance(row, Register) else None,
    )


def numbered(
    rows: Sequence[ControlRow],
    stream: str,
    segment: Segment,
    versions: MutableMapping[str, int],
) -> Iterator[tuple[int, AboutQuery, int]]:
    """The rows about queries, each with its number in its segment and its version; see `query_rows`."""
    for number, row in chosen(rows, AboutQuery):
        if isinstance(row, Registration | Fail):
            version = row.version
        else:
            version = _dropped(row, versions, stream, segment, number)
        # `fail` may come after a newer one
        versions[row.query] = max(version, versions.get(row.query, 0))
        yield number, row, version


def _dropped(
    row: AboutQuery,
    versions: Mapping[str, int],
    stream: str,
    segment: Segment,
    number: int,
) -> int:
    """The version that a drop ends."""
    try:
        return versions[row.query]
    except KeyError:
        raise LogError(
            f"segment {segment.number} of stream {stream}: row {number + 1} is no control row: "
            f"it drops {row.query!r}, which is not registered",
            hint="restore the segment from a copy",
        ) from None


def note_versions(rows: Rectangles, versions: MutableMapping[str, int]) -> None:
    """Keeps the versions of queries up to date by registrations that stand in columns; see `query_rows`."""
    for name, version in zip(rows.names, rows.versions, strict=True):
        versions[name] = max(version, versions.get(name, 0))
