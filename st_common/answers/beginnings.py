"""What lies in a log before a query: fixes that it never sees, or of which it sees each object's last (SPEC P4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.log.log import Log
from st_common.log.reader import pieces
from st_common.operations.status import read_status
from st_common.position import segment_of
from st_common.query.control import QueryRow

_MOST_BYTES = (
    16 << 20
)  # so much is decoded to count it; a registration shall not take long
_MOST_SEGMENTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where queries of one stream begin.

    Attributes:
        stream: the name of the stream.
        fixes: how many fixes lie before them in the log.
        uncounted: how many segments before them nobody has counted the fixes of.
        blind: queries that see none of these fixes: their windows and ways begin with the next fix.
        seeing: queries that start from the last fix of each object.
    """

    stream: str
    fixes: int
    uncounted: int
    blind: tuple[str, ...]
    seeing: tuple[str, ...]


def beginnings(
    home: Home, streams: Mapping[str, StreamSettings], rows: Iterable[QueryRow]
) -> list[Beginning]:
    """Where queries begin that were just registered or replaced, stream by stream.

    Streams without a fix before them are left out.

    Args:
        home: the home folder.
        streams: the settings; other streams are left out.
        rows: control rows that were just written, of any kind.
    """
    made: dict[str, list[QueryRow]] = {}
    for row in rows:
        begins = row.op in ("register", "replace")  # who follows an area goes on
        if begins and row.plan is not None and row.stream in streams:
            made.setdefault(row.stream, []).append(row)
    begun = [
        _beginning(home, streams[stream], of_stream)
        for stream, of_stream in sorted(made.items())
    ]
    return [one for one in begun if one.fixes or one.uncounted]


def _beginning(
    home: Home, stream: StreamSettings, rows: Sequence[QueryRow]
) -> Beginning:
    fixes, uncounted = _before(
        home, stream, segment_of(min(row.position for row in rows))
    )
    blind = {
        row.name: row.plan is not None
        and (row.plan.window or row.plan.frame) is not None
        for row in rows
    }
    return Beginning(
        stream=stream.name,
        fixes=fixes,
        uncounted=uncounted,
        blind=tuple(name for name, is_blind in blind.items() if is_blind),
        seeing=tuple(name for name, is_blind in blind.items() if not is_blind),
    )


def _before(home: Home, stream: StreamSettings, end: int) -> tuple[int, int]:
    """The fixes before a segment, and how many segments were not counted: those that the engine has not come to yet.

    What lies between the engine and the segment is decoded, up to a limit; an engine may be past the segment already.
    """
    status, log = read_status(home.stream(stream.name)), Log(home.log(stream.name))
    at, fixes = (
        (segment_of(status.position), status.fixes) if status is not None else (0, 0)
    )
    segments = log.segments(
        min(at, end),
        end=max(at, end),
        max_bytes=_MOST_BYTES,
        max_segments=_MOST_SEGMENTS,
    )
    between = sum(
        len(piece.part.decoded.fixes)
        for piece in pieces(log, segments, stream)
        if piece.part
    )
    return (
        (fixes - between, 0)
        if at > end
        else (fixes + between, end - at - len(segments))
    )


def in_words(one: Beginning) -> list[str]:
    """A beginning for people: up to two lines, one about what queries do not see, one about what they start from."""
    more = (
        f" and those of {one.uncounted:,} segments that nobody has counted yet"
        if one.uncounted
        else ""
    )
    fixes = f"{one.fixes:,} fix{'' if one.fixes == 1 else 'es'}{more}"
    lines = []
    if one.blind:
        lines.append(
            f"{fixes} of {one.stream} lie before {_few(one.blind)} and are not seen: windows begin with the next fix"
        )
    if one.seeing:
        lines.append(
            f"{fixes} of {one.stream} lie before {_few(one.seeing)}, "
            f"{'which starts' if len(one.seeing) == 1 else 'which start'} from the last fix of each object; "
            "`fairway query run` asks about the time before"
        )
    return lines


def _few(names: Sequence[str]) -> str:
    return (
        ", ".join(names)
        if len(names) <= 3
        else f"{len(names)} queries ({names[0]} to {names[-1]})"
    )
