"""Queries in the control rows of a stream's log: as bytes, and back in log order."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Literal

from st_common.capture.log import SEGMENT_LIMIT, Log, Segment
from st_common.errors import LogError
from st_common.home import Home
from st_common.position import position_of
from st_common.query.plain import PlainRows, plain_rows, plan_text
from st_common.query.plan import Plan

Op = Literal["register", "replace", "drop", "fail"]
OPS = ("register", "replace", "drop", "fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One control row of a query: where it stands in which log, and what it did.

    `version` of a drop is the version that it dropped; its plan, text and owner are None. `arrival_us` is when the row
    was written (UTC microseconds). `layer_version` is the version of the joined layer that the query starts with.
    A row `fail` says that the query is judged no more, and `why`; its plan, text and owner are None. What is registered
    by a name has the `why` of the row `fail` after it.
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
    """The row as a line of a control segment, with its newline."""
    parts = [f'{{"op":"{row.op}","query":{quoted(row.name)}']
    if row.plan is not None:
        parts.append(f',"version":{row.version},"plan":{plan_text(row.plan)}')
        parts.append(
            f',"text":{_text_or_null(row.text)},"owner":{_text_or_null(row.owner)}'
        )
    if row.op == "fail":
        parts.append(f',"version":{row.version},"why":{_text_or_null(row.why)}')
    if row.layer_version is not None:
        parts.append(f',"layer_version":{row.layer_version}')
    return "".join([*parts, "}\n"]).encode()


def _text_or_null(text: str | None) -> str:
    return "null" if text is None else quoted(text)


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


def rows_of(
    home: Home, stream: str, *, start: int = 0, versions: dict[str, int] | None = None
) -> Iterator[QueryRow]:
    """The query rows of a stream's log from segment `start` on, in log order; other control rows are passed over.

    `versions` are the live queries before `start` (a drop does not carry its version); they are kept up to date.

    Raises:
        LogError: a control row that is no JSON object, or a query row without its parts.
    """
    log = Log(home.log(stream))
    yield from rows_in(
        log, log.control_segments(start), stream, {} if versions is None else versions
    )


def rows_in(
    log: Log,
    segments: Iterable[Segment],
    stream: str,
    versions: dict[str, int],
    *,
    only: int | None = None,
    brief: bool = False,
) -> Iterator[QueryRow]:
    """The query rows of some control segments, as `rows_of`; with `only` those that stand in that row of theirs.

    `brief` rows have no plan: reading those of a hundred thousand takes seconds.
    """
    for segment in segments:
        yield from rows_of_segment(
            log.read(segment), stream, segment, versions, only=only, brief=brief
        )


def rows_of_segment(
    payload: bytes,
    stream: str,
    segment: Segment,
    versions: dict[str, int],
    *,
    only: int | None = None,
    brief: bool = False,
) -> Iterator[QueryRow]:
    """The query rows of one control segment; see `rows_in`."""
    for number, value in values_of(payload, stream, segment, versions, only=only):
        yield _row(value, stream, segment, number, brief=brief)


def plain_in(payload: bytes, versions: dict[str, int]) -> PlainRows | None:
    """A control segment as columns where it has rectangles alone (see `plain_rows`); `versions` are kept up to date."""
    plain = plain_rows(payload)
    if plain is not None:
        for name, version in zip(plain.names, plain.versions, strict=True):
            versions[name] = max(version, versions.get(name, 0))
    return plain


def values_of(
    payload: bytes,
    stream: str,
    segment: Segment,
    versions: dict[str, int],
    *,
    only: int | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The query rows of one control segment as JSON values with a version, and their numbers; see `rows_in`."""
    for number, line in enumerate(payload.split(b"\n")):
        wanted = line and only in (None, number)
        value = _decoded(line, stream, segment, number, versions) if wanted else None
        if value is not None:
            yield number, value


def _decoded(
    line: bytes, stream: str, segment: Segment, number: int, versions: dict[str, int]
) -> dict[str, Any] | None:
    try:
        value: dict[str, Any] = json.loads(line)
        if value["op"] not in OPS:
            return None
        name = value["query"]
        version = versions[name] if value["op"] == "drop" else value["version"]
        versions[name] = max(
            version, versions.get(name, 0)
        )  # `fail` may come after a newer one
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(
            f"segment {segment.number} of stream {stream}: row {number + 1} is no control row"
        ) from error
    return {**value, "version": version}


def _row(
    value: dict[str, Any], stream: str, segment: Segment, number: int, *, brief: bool
) -> QueryRow:
    planned = value["op"] in ("register", "replace") and not brief
    try:
        return QueryRow(
            name=value["query"],
            version=value["version"],
            op=value["op"],
            stream=stream,
            position=position_of(segment.number, number),
            arrival_us=segment.arrival_us,
            plan=Plan.from_json(value["plan"]) if planned else None,
            text=value.get("text"),
            owner=value.get("owner"),
            layer_version=value.get("layer_version"),
            why=value.get("why"),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(
            f"segment {segment.number} of stream {stream}: row {number + 1} is no control row"
        ) from error
