"""NMEA sentences of AIS taken apart: their checks, their times, and which of them make a message."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.chunk import Chunk, whole
from st_common.formats.format_settings import Source
from st_common.formats.numbers import long_values, mask
from st_common.formats.records import Reason
from st_common.formats.spans import Bytes, Ints, Mask, Spans, lines

_LEAST_CHUNK = 1 << 18  # bytes
_RECEIVED = b"$PGHP,"  # when the sentence behind it was received
_COMMENT, _OTHER_SENTENCE = b"#", b"$"
MOST_BETWEEN = 256  # sentences between two parts of a message
_MOST_PARTS = 9
_SENTENCE = (
    r"^(?:[^!\\]*\\(?P<tags>[^\\*]*)\*(?P<tag_sum>[0-9A-Fa-f]{2})\\)?(?P<front>[^!\\]*)"
    r"!(?P<checked>(?P<talker>[A-Z0-9-]{2}VD[MO]),(?P<parts>[1-9]),(?P<part>[1-9]),"
    r"(?P<group>[0-9]*),(?P<channel>[^,*]*),(?P<payload>[0-W`-w]*),(?P<fill>[0-5]))"
    r"\*(?P<sum>[0-9A-Fa-f]{2})(?P<behind>.*)$"
)
_SECONDS = r"(?P<s>[0-9]{10})(?P<ms>[0-9]{3})?(?:\.[0-9]+)?"
_TAG_TIME = rf"(?:^|,)c:{_SECONDS}(?:,|$)"
_LAST_TIME = rf",{_SECONDS}\s*$"
_FIRST_TIME = rf"^\D?{_SECONDS}\D"
_RECEIVED_TIME = (
    r"^\$PGHP,[0-9]+,(?P<Y>[12][0-9]{3}),(?P<m>[0-9]{1,2}),(?P<d>[0-9]{1,2}),"
    r"(?P<H>[0-9]{1,2}),(?P<M>[0-9]{1,2}),(?P<S>[0-9]{1,2}),(?P<ms>[0-9]{1,3}),"
)
_DIGIT = np.full(256, 0, np.uint8)
for _place, _digits in enumerate(
    zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)
):
    _DIGIT[list(_digits)] = _place


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


@dataclass(frozen=True, slots=True)
class Messages:
    """Whole messages: their symbols in `data`, from `starts` to `ends`, without `fill` bits at the end.

    `last` and `first` are the rows of the sentences in which each ends and begins. `lost` says which sentences are
    parts of none, and `open` which of those may be parts of one whose end is still to come.
    """

    data: Bytes
    starts: Ints
    ends: Ints
    fill: Ints
    first: Ints
    last: Ints
    lost: Mask
    open: Mask


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

    `at` counts them from the first one of their payload; those that came before it are below 0.
    """

    rows: Ints
    fields: pa.StructArray
    received: pa.Array
    at: Ints

    def column(self, name: str) -> pa.Array:
        """A field of all sentences, as bytes."""
        return self.fields.field(name)

    def number(self, name: str) -> Ints:
        """A field that is a number; 0 where it is empty."""
        return _numbers(self.column(name))

    def times_us(self) -> Ints:
        """When each was received (us), 0 where nothing says it."""
        times = _received_us(self.received)
        for name, pattern in (
            ("front", _FIRST_TIME),
            ("behind", _LAST_TIME),
            ("tags", _TAG_TIME),
        ):
            said = pc.extract_regex(self.column(name), pattern)
            seconds = _numbers(said.field("s"))
            us = (seconds * 1000 + _numbers(said.field("ms"))) * 1000
            times = np.where(mask(said.is_valid()), us, times)
        return times


def sentences_of(texts: Lines, before_at: Ints) -> tuple[Sentences, NDArray[np.int8]]:
    """The sentences among some lines, and int8[n]: the reason why each of the others is none.

    Args:
        texts: the lines.
        before_at: the places of the first sentences, which came before the payload; all others are counted from 0.
    """
    own = texts.sentences.texts()
    fields = pc.extract_regex(own, _SENTENCE)
    is_one = mask(fields.is_valid())
    is_other = mask(pc.starts_with(own, _OTHER_SENTENCE))
    fault = np.where(is_other, Reason.NO_POSITION, Reason.UNREADABLE).astype(np.int8)
    fault[is_one] = Reason.NONE
    found = pa.StructArray.from_arrays(
        [part.filter(pa.array(is_one)) for part in fields.flatten()],
        fields=list(fields.type),
    )
    good = _has_sum(found.field("checked"), found.field("sum"))
    tagged = pc.binary_length(found.field("tag_sum")).to_numpy() > 0
    good &= ~tagged | _has_sum(found.field("tags"), found.field("tag_sum"))
    rows = np.flatnonzero(is_one)
    fault[rows[~good]] = Reason.BAD_CHECKSUM
    kept = pa.array(good)
    received = texts.received.select(rows[good]).texts()
    count = int(good.sum())
    at = np.append(before_at[:count], np.arange(count - len(before_at)))
    return Sentences(rows[good], found.filter(kept), received, at), fault


def _has_sum(texts: pa.Array, sums: pa.Array) -> Mask:
    """Whether the exclusive or of the bytes of each text is what two hexadecimal digits say."""
    padded = pc.binary_join_element_wise(texts, b"\0", b"")
    data, offsets = bytes_of(padded)
    found = np.bitwise_xor.reduceat(data, offsets[:-1]) if len(texts) else data
    digits, places = bytes_of(pc.binary_join_element_wise(sums, b"00", b""))
    high, low = _DIGIT[digits[places[:-1]]], _DIGIT[digits[places[:-1] + 1]]
    same: Mask = found == high * np.uint8(16) + low
    return same


def messages_of(found: Sentences) -> Messages:
    """The messages that sentences make, in the order of their ends.

    Parts of one have the same talker, group and channel, and come in their order, maybe with others between.
    """
    parts, part = found.number("parts"), found.number("part")
    names = ("talker", "parts", "group", "channel")
    keys = pc.binary_join_element_wise(*(found.column(name) for name in names), b",")
    codes = keys.dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    begins = _begins(codes[order], parts[order], part[order], found.at[order])
    counts = parts[order][begins]
    firsts, lasts = order[begins], order[begins + counts - 1]
    by_end = np.argsort(lasts)
    first, last = firsts[by_end], lasts[by_end]
    begins, counts = begins[by_end], counts[by_end]
    ends = np.cumsum(counts)
    within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    rows = order[np.repeat(begins, counts) + within]
    data, offsets = bytes_of(found.column("payload").take(pa.array(rows)))
    at = (offsets[ends - counts], offsets[ends])
    lost = np.isin(np.arange(len(parts)), rows, invert=True)
    is_open = lost & (parts > 1) & _stand_last(codes, lost)
    fill = found.number("fill")[last]
    return Messages(data, *at, fill, first, last, lost, is_open)


def _stand_last(codes: Ints, lost: Mask) -> Mask:
    """Which sentences come behind all of their group that are parts of a message."""
    latest = np.full(codes.max(initial=-1) + 1, -1)
    used = np.flatnonzero(~lost)
    latest[codes[used]] = used  # they ascend: the last one stays
    stand_last: Mask = np.arange(len(codes)) > latest[codes]
    return stand_last


def _begins(codes: Ints, parts: Ints, part: Ints, at: Ints) -> Ints:
    """Where whole messages begin, among sentences by group: parts 1, 2, .. of as many as there must be."""
    is_whole = part == 1
    for step in range(1, _MOST_PARTS):
        more = np.flatnonzero(is_whole & (parts > step))
        next_one = np.minimum(more + step, len(part) - 1)
        follows = (more + step < len(part)) & (codes[next_one] == codes[more])
        follows &= part[next_one] == step + 1
        follows &= at[next_one] - at[more] <= MOST_BETWEEN
        is_whole[more[~follows]] = False
    return np.flatnonzero(is_whole)


def bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of all texts behind each other, and where each starts and the last one ends."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.zeros(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    places = np.frombuffer(offsets, np.int32)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return np.frombuffer(data, np.uint8), places.astype(np.int64)


def _numbers(texts: pa.Array) -> Ints:
    """Texts of digits as numbers; 0 for null and nothing."""
    digits = texts.cast(pa.string())
    filled = pc.if_else(pc.equal(digits, ""), pa.scalar(None, pa.string()), digits)
    return long_values(filled.cast(pa.int64()))


def _received_us(texts: pa.Array) -> Ints:
    """The times of `$PGHP` lines (us); 0 for other texts, and for days that no calendar has."""
    said = pc.extract_regex(texts, _RECEIVED_TIME)
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
