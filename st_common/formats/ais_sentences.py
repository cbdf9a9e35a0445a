r"""NMEA sentences of AIS taken apart: their checks, their times, their stations, their tag groups.

Lines of a tag group belong together, and often only the first says when and by whom:

    \g:1-2-1234,s:st1,c:1700000000*4A\$ARVSI,..      line 1 of 2 of group 1234: the time and the station
    \g:2-2-1234*59\!AIVDM,1,1,,A,15RT..              line 2: has those of line 1

Also as some write it: `\1G2:1234,c:1700000000*..\`. Two stations may count their groups alike: where it is open whose
line 2 it is, it has no line 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.chunk import Chunk, whole
from st_common.formats.format_settings import Source
from st_common.formats.nmea_sums import has_sum
from st_common.formats.numbers import long_values, mask
from st_common.formats.records import Reason
from st_common.formats.spans import Ints, Mask, Spans, lines

_LEAST_CHUNK = 1 << 18  # bytes
_RECEIVED = b"$PGHP,"  # when the sentence behind it was received
_COMMENT = b"#"
_OTHER_SENTENCE = r"^(?:\\[^\\]*\\)?\$"
MOST_BETWEEN = 256  # sentences between two parts of a message, and between two lines of a tag group
_SENTENCE = (
    r"^(?:[^!\\]*\\(?P<tags>[^\\*]*)\*(?P<tag_sum>[0-9A-Fa-f]{2})\\)?(?P<front>[^!\\]*)"
    r"!(?P<checked>(?P<talker>[A-Z0-9-]{2}VD[MO]),(?P<parts>[1-9]),(?P<part>[1-9]),"
    r"(?P<group>[0-9]*),(?P<channel>[^,*]*),(?P<payload>[0-W`-w]*),(?P<fill>[0-5]))"
    r"\*(?P<sum>[0-9A-Fa-f]{2})(?P<behind>.*)$"
)
_SECONDS = r"(?P<s>[0-9]{10})(?P<ms>[0-9]{3})?(?:\.[0-9]+)?"
_TAG_TIME = rf"(?:^|,)c:{_SECONDS}(?:,|$)"
_TAG_STATION = r"(?:^|,)s:(?P<station>[^,*]+)(?:,|$)"
_LAST_STATION = r",(?P<station>[br][0-9A-Za-z_-]+)(?:,|\s*$)"
_LAST_TIME = rf",{_SECONDS}\s*$"
_FIRST_TIME = rf"^\D?{_SECONDS}\D"
_HINTS_OF_GROUPS = (b"g:", b"G")
_BLOCK = r"^[^!$\\]*\\(?P<tags>[^\\*]*)\*(?P<sum>[0-9A-Fa-f]{2})\\"
_GROUP = (
    r"(?:^|,)g:(?P<line>[1-9][0-9]?)-(?P<lines>[1-9][0-9]?)-(?P<id>[0-9A-Za-z]+)(?:,|$)"
)
_OTHER_GROUP = r"(?:^|,)(?P<line>[1-9])G(?P<lines>[1-9]):(?P<id>[0-9A-Za-z]+)(?:,|$)"
_FIRST_STAMP = (  # as loggers put it in front of lines; one without a zone is no instant
    r"(?P<Y>[12][0-9]{3})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})[T ](?P<H>[0-9]{2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})"
    r"(?:[.,](?P<ms>[0-9]{3})[0-9]*)? ?(?:Z|UTC|(?P<sign>[+-])(?P<zh>[0-9]{2}):?(?P<zm>[0-9]{2}))"
)
_RECEIVED_TIME = (
    r"^\$PGHP,[0-9]+,(?P<Y>[12][0-9]{3}),(?P<m>[0-9]{1,2}),(?P<d>[0-9]{1,2}),"
    r"(?P<H>[0-9]{1,2}),(?P<M>[0-9]{1,2}),(?P<S>[0-9]{1,2}),(?P<ms>[0-9]{1,3}),"
)


@dataclass(frozen=True, slots=True)
class Lines:
    """The records of a payload: `records` with the `$PGHP` lines in front of each, `sentences` without.

    `received` are the lines directly in front of the sentences; empty where they are something else. `rest` is the last
    line where it is a `$PGHP` one, whose sentence is still to come.
    """

    records: Spans
    sentences: Spans
    received: Spans
    rest: Spans


def ais_chunks(source: Source, *, size: int) -> Iterator[Chunk]:
    """Chunks that end behind a sentence, so that the time in front of one stays with it."""
    size = max(size, _LEAST_CHUNK)
    for data in whole(source, b"", size, _border):
        records = lines_of(data).records
        if len(records):
            yield Chunk(b"", records)


def _border(data: bytes) -> int:
    end = data.rfind(b"\n") + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        if not data.startswith(_RECEIVED, start):
            return end
        end = start
    return 0


def lines_of(payload: bytes) -> Lines:
    """The lines of a payload that are records, comments and times left out."""
    every = lines(np.frombuffer(payload, np.uint8))
    texts = every.texts()
    is_time = mask(pc.starts_with(texts, _RECEIVED))
    is_record = ~is_time & ~mask(pc.starts_with(texts, _COMMENT))
    places = np.arange(len(every))
    other = (
        np.maximum.accumulate(np.where(is_time, -1, places)) if len(every) else places
    )
    before = np.append(-1, other[:-1])[is_record] + 1  # the first time in front
    own = every.select(is_record)
    starts = every.starts[before]
    front = np.maximum(places[is_record] - 1, 0)
    has_time = before < places[is_record]
    ends = np.where(has_time, every.ends[front], every.starts[front])
    return Lines(
        Spans(every.buffer, starts, own.ends),
        own,
        Spans(every.buffer, every.starts[front], ends),
        every.select(is_time & (places == len(every) - 1)),
    )


@dataclass(frozen=True, slots=True)
class Sentences:
    """The lines that are sentences: their rows, their fields by the names of `_SENTENCE`, and what they say of time.

    `at` counts them from the first one of their payload; those that came before it are below 0. `tag_group` names the
    tag group that each is a line of, and `head` is the tag block of that group's first line; else both are empty.
    """

    rows: Ints
    fields: pa.StructArray
    received: pa.Array
    at: Ints
    tag_group: pa.Array
    head: pa.Array

    def column(self, name: str) -> pa.Array:
        """A field of all sentences, as bytes."""
        return self.fields.field(name)

    def number(self, name: str) -> Ints:
        """A field that is a number; 0 where it is empty."""
        return _numbers(self.column(name))

    def station(self) -> pa.Array:
        """The station that received each: by its tag block, that of its group's first line, or a last column."""
        said = [
            pc.extract_regex(texts, pattern).field("station")
            for texts, pattern in (
                (self.column("tags"), _TAG_STATION),
                (self.head, _TAG_STATION),
                (self.column("behind"), _LAST_STATION),
            )
        ]
        return pc.coalesce(*(_filled(one) for one in said), b"")

    def times_us(self) -> Ints:
        """When each was received (us), 0 where nothing says it."""
        times = _received_us(self.received)
        stamped = _stamped_us(self.column("front"))
        times = np.where(stamped > 0, stamped, times)
        for texts, pattern in (
            (self.head, _TAG_TIME),
            (self.column("front"), _FIRST_TIME),
            (self.column("behind"), _LAST_TIME),
            (self.column("tags"), _TAG_TIME),
        ):
            said = pc.extract_regex(texts, pattern)
            seconds = _numbers(said.field("s"))
            us = (seconds * 1000 + _numbers(said.field("ms"))) * 1000
            times = np.where(mask(said.is_valid()), us, times)
        return times


def sentences_of(
    texts: Lines, before_at: Ints
) -> tuple[Ints, Sentences, NDArray[np.int8]]:
    """The place of each line, the sentences among them, and int8[n]: the reason why each of the others is none.

    Args:
        texts: the lines.
        before_at: the places of the first lines, which came before the payload; all others are counted from 0.
    """
    own = texts.sentences.texts()
    fields = pc.extract_regex(own, _SENTENCE)
    is_one = mask(fields.is_valid())
    is_other = mask(pc.match_substring_regex(own, _OTHER_SENTENCE))
    fault = np.where(is_other, Reason.NO_POSITION, Reason.UNREADABLE).astype(np.int8)
    fault[is_one] = Reason.NONE
    found = pa.StructArray.from_arrays(
        [part.filter(pa.array(is_one)) for part in fields.flatten()],
        fields=list(fields.type),
    )
    good = has_sum(found.field("checked"), found.field("sum"))
    tagged = pc.binary_length(found.field("tag_sum")).to_numpy() > 0
    good &= ~tagged | has_sum(found.field("tags"), found.field("tag_sum"))
    rows = np.flatnonzero(is_one)
    fault[rows[~good]] = Reason.BAD_CHECKSUM
    at = _counted(fault == Reason.NONE, before_at)
    group, head = _heads_of(own, at)
    rows, kept = rows[good], pa.array(good)
    taken = pa.array(rows)
    received = texts.received.select(rows).texts()
    sentences = Sentences(
        rows=rows,
        fields=found.filter(kept),
        received=received,
        at=at[rows],
        tag_group=group.take(taken),
        head=head.take(taken),
    )
    return at, sentences, fault


def _counted(is_sentence: Mask, before_at: Ints) -> Ints:
    """How many sentences of the payload stand in front of each line; of the first lines it is known already."""
    before_at = before_at[: len(is_sentence)]
    own = is_sentence[len(before_at) :]
    return np.append(before_at, np.cumsum(own) - own)


def _numbers(texts: pa.Array) -> Ints:
    """Texts of digits as numbers; 0 for null and nothing."""
    return long_values(_filled(texts).cast(pa.string()).cast(pa.int64()))


def _filled(texts: pa.Array) -> pa.Array:
    """Texts, null for nothing."""
    return pc.if_else(pc.equal(texts, b""), pa.scalar(None, texts.type), texts)


def _received_us(texts: pa.Array) -> Ints:
    """The times of `$PGHP` lines (us); 0 for other texts, and for days that no calendar has."""
    return _calendar_us(pc.extract_regex(texts, _RECEIVED_TIME))


def _stamped_us(texts: pa.Array) -> Ints:
    """The times of stamps that say their zone (us); 0 for other texts."""
    said = pc.extract_regex(texts, _FIRST_STAMP)
    if said.null_count == len(said):
        return np.zeros(len(said), np.int64)
    away_us = (
        _numbers(said.field("zh")) * 60 + _numbers(said.field("zm"))
    ) * 60_000_000
    us = _calendar_us(said)
    west = mask(pc.equal(said.field("sign"), b"-"))
    return np.where(us > 0, us + np.where(west, away_us, -away_us), 0)


def _calendar_us(said: pa.StructArray) -> Ints:
    """The times of years, months, days and so on (us); 0 where there are none, or no such day."""
    year, month, day, hour, minute, second, ms = (
        _numbers(said.field(name)) for name in ("Y", "m", "d", "H", "M", "S", "ms")
    )
    months = np.maximum(year - 1970, 0) * 12 + np.clip(month, 1, 12) - 1
    start = months.astype("datetime64[M]").astype("datetime64[D]")
    date = start + (day - 1)
    real = mask(said.is_valid()) & (month >= 1) & (month <= 12) & (year >= 1970)
    real &= (date.astype("datetime64[M]").astype(np.int64) == months) & (hour < 24)
    clock = ((hour * 60 + minute) * 60 + second) * 1000 + ms
    us = date.astype(np.int64) * 86_400_000_000 + clock * 1000
    return np.where(real & (minute < 60) & (second < 60), us, 0)


# --- tag groups ---


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The lines of tag groups: ordered by group, in a group as they came.

    `rows` are the lines, `code` says which group, `line` of how many `lines` each is.
    """

    rows: Ints
    code: Ints
    line: Ints
    lines: Ints
    at: Ints
    ids: pa.Array
    tags: pa.Array


def _heads_of(texts: pa.Array, at: Ints) -> tuple[pa.Array, pa.Array]:
    """Of each line the tag group that it is of, and the tag block of that group's first line; else empty.

    Args:
        texts: lines.
        at: how many sentences stand in front of each.
    """
    groups, heads = (_Column(len(texts)) for _ in range(2))
    grouped = _grouped(texts, at)
    if grouped is not None:
        groups.put(grouped.rows, grouped.ids)
        head = _first_lines(grouped)
        with_one = head >= 0
        tags = grouped.tags.take(pa.array(head[with_one]))
        heads.put(grouped.rows[with_one], tags)
    return groups.values(), heads.values()


def awaited(texts: pa.Array, at: Ints) -> Mapping[int, bytes]:
    """The tag blocks of lines whose groups may go on behind all of them, by line.

    Args:
        texts: lines.
        at: how many sentences stand in front of each.
    """
    grouped = _grouped(texts, at)
    if grouped is None:
        return {}
    ended = np.where(grouped.line == grouped.lines, np.arange(len(grouped.rows)), -1)
    latest = np.full(int(grouped.code.max()) + 1, -1)
    np.maximum.at(latest, grouped.code, ended)
    is_open = np.arange(len(grouped.rows)) > latest[grouped.code]
    rows = grouped.rows[is_open]
    blocks = pc.replace_substring_regex(
        texts.take(pa.array(rows)), rf"{_BLOCK}(?s:.*)", r"\\\1*\2\\"
    )
    return dict(zip(rows.tolist(), blocks.to_pylist(), strict=True))


def _grouped(texts: pa.Array, at: Ints) -> _Grouped | None:
    """The lines of groups; None where there are none, which is seen at a glance."""
    if not _may_have_groups(texts):
        return None
    blocks = pc.extract_regex(texts, _BLOCK)
    tags = pc.struct_field(blocks, "tags")
    said, other = (pc.extract_regex(tags, each) for each in (_GROUP, _OTHER_GROUP))
    line, lines, ids = (
        pc.coalesce(pc.struct_field(said, name), pc.struct_field(other, name))
        for name in ("line", "lines", "id")
    )
    rows = np.flatnonzero(mask(ids.is_valid()))
    sums = blocks.field("sum").take(pa.array(rows))
    rows = rows[has_sum(tags.take(pa.array(rows)), sums)]
    if not len(rows):
        return None
    taken = pa.array(rows)
    keys = pc.binary_join_element_wise(lines.take(taken), ids.take(taken), b"-")
    code = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    order = np.argsort(code, kind="stable")
    rows, taken = rows[order], pa.array(rows[order])
    return _Grouped(
        rows=rows,
        code=code[order],
        line=_numbers(line.take(taken)),
        lines=_numbers(lines.take(taken)),
        at=at[rows],
        ids=keys.take(pa.array(order)),
        tags=tags.take(taken),
    )


def _may_have_groups(texts: pa.Array) -> bool:
    _, _, data = texts.buffers()
    held = b"" if data is None else data.to_pybytes()
    return b"\\" in held and any(hint in held for hint in _HINTS_OF_GROUPS)


def _first_lines(grouped: _Grouped) -> Ints:
    """Of each line of a group the place of its first one; -1 of that itself, and where it is open which is meant."""
    places = np.arange(len(grouped.rows))
    near = np.zeros(len(places), bool)
    near[1:] = grouped.code[1:] == grouped.code[:-1]
    near[1:] &= grouped.at[1:] - grouped.at[:-1] <= MOST_BETWEEN
    follows = near.copy()
    follows[1:] &= grouped.line[1:] == grouped.line[:-1] + 1
    start = np.maximum.accumulate(np.where(follows, 0, places))
    begun_before = near.copy()
    begun_before[1:] &= grouped.line[:-1] < grouped.lines[:-1]
    begun_before &= ~_of_one_station(grouped)
    sure = (grouped.line == 1) & ~begun_before
    return np.where(sure[start] & (start != places), start, -1)


def _of_one_station(grouped: _Grouped) -> Mask:
    """Which lines name the same station as the line in front of them: then that one's group was given up."""
    said = pc.struct_field(pc.extract_regex(grouped.tags, _TAG_STATION), "station")
    same = np.zeros(len(grouped.rows), bool)
    same[1:] = mask(pc.equal(said[1:], said[:-1]))
    return same


class _Column:
    """A column of bytes of which few are not empty."""

    def __init__(self, count: int) -> None:
        self._from = np.zeros(count, np.int64)
        self._pieces = [pa.array([b""], pa.binary())]

    def put(self, rows: Ints, values: pa.Array) -> None:
        """Puts values into rows."""
        known = sum(map(len, self._pieces))
        self._from[rows] = known + np.arange(len(rows))
        self._pieces.append(values.cast(pa.binary()))

    def values(self) -> pa.Array:
        """All of them."""
        return pa.concat_arrays(self._pieces).take(pa.array(self._from))
