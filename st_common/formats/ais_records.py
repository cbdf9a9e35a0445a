r"""What ships say in the sentences of AIS: parts joined to messages, bits read, positions with their ship's name.

The parts of a message have the same talker, count, sequence number, channel and tag group, come in their order, and are
of one station, where the tag block (`s:`) or a last column (`,b003669710,`) names it:

    \s:st1*..\!AIVDM,2,1,1,A,55NB..     station st1, its message 1         ->   part of ALFA
    \s:st2*..\!AIVDM,2,1,1,A,53@n..     st2 counts its own messages        ->   part of BRAVO
    \s:st1*..\!AIVDM,2,2,1,A,8888..     st1 again                          ->   the end of ALFA

Parts that name no station go on what is begun if one message alone can be meant. Where two may be, neither is made of
them: half of one ship's message behind half of another's would read well, and be wrong. The end that is then still to
come is not taken for that of the next message either, as long as it may come.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from st_common.formats.ais_sentences import (
    MOST_BETWEEN,
    Lines,
    Sentences,
    awaited,
    lines_of,
    sentences_of,
)
from st_common.formats.format_settings import FormatSettings
from st_common.formats.last_known import LastKnown
from st_common.formats.nmea_sums import bytes_of
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.said_before import (
    NOTHING,
    Said,
    SaidBefore,
    Value,
    said_before,
)
from st_common.formats.spans import Bytes, Ints, Mask

# --- parts joined to messages ---

_BEHIND = 1 << 40  # more sentences than a payload has
_NO_STATION = b""


@dataclass(frozen=True, slots=True)
class _Messages:
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


def _messages_of(found: Sentences) -> _Messages:
    """The messages that sentences make, in the order of their ends."""
    parts, part = found.number("parts"), found.number("part")
    several = np.flatnonzero(parts > 1)
    joined = _joined(found, several, parts[several], part[several])
    is_end = (parts == 1) & (part == 1)
    is_end[several[(joined.before >= 0) & (part[several] == parts[several])]] = True
    last = np.flatnonzero(is_end)
    before = np.full(len(parts), -1)
    known = joined.before >= 0
    before[several[known]] = several[joined.before[known]]
    rows = _rows(last, parts[last], before)
    first = rows[np.cumsum(parts[last]) - parts[last]]
    data, offsets = bytes_of(found.column("payload").take(pa.array(rows)))
    ends = np.cumsum(parts[last])
    lost = np.ones(len(parts), bool)
    lost[rows] = False
    is_open = np.zeros(len(parts), bool)
    is_open[several] = joined.open
    at = (offsets[ends - parts[last]], offsets[ends])
    fill = found.number("fill")[last]
    return _Messages(data, *at, fill, first, last, lost, is_open & lost)


def _rows(last: Ints, counts: Ints, before: Ints) -> Ints:
    """The sentences of messages, in their order, one message behind the other."""
    ends = np.cumsum(counts)
    rows = np.zeros(int(counts.sum()), np.int64)
    at, left, place = last, counts, ends - 1
    while len(at):
        rows[place] = at
        going = left > 1
        at, left, place = before[at[going]], left[going] - 1, place[going] - 1
    return rows


@dataclass(frozen=True, slots=True)
class _Joined:
    """Of each sentence the one that it goes on, -1 for none; and which may be gone on behind the payload."""

    before: Ints
    open: Mask


@dataclass(frozen=True, slots=True)
class _Parts:
    """Sentences that are parts: what tells messages apart (`code`, `station`), and which part each is.

    `own` is the code of both; parts with the same one are of the same message, unless the station is unknown. `end` is
    how many sentences the payload has.
    """

    code: Ints
    own: Ints
    station: pa.Array
    has_station: Mask
    part: Ints
    parts: Ints
    at: Ints
    payload: pa.Array
    end: int


def _joined(found: Sentences, rows: Ints, parts: Ints, part: Ints) -> _Joined:
    if not len(rows):
        return _Joined(np.zeros(0, np.int64), np.zeros(0, bool))
    taken = pa.array(rows)
    names = ("talker", "parts", "group", "channel")
    columns = [found.column(name).take(taken) for name in names]
    station = found.station().take(taken)
    tag_group = found.tag_group.take(taken)
    key = pc.binary_join_element_wise(*columns, tag_group, b",")
    every = _Parts(
        code=_codes(key),
        own=_codes(pc.binary_join_element_wise(key, station, b"\n")),
        station=station,
        has_station=pc.binary_length(station).to_numpy(zero_copy_only=False) > 0,
        part=part,
        parts=parts,
        at=found.at[rows],
        payload=found.column("payload").take(taken),
        end=int(found.at.max(initial=-1)) + 1,
    )
    return _told_apart(every)


def _codes(keys: pa.Array) -> Ints:
    codes: Ints = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _told_apart(every: _Parts) -> _Joined:
    """The parts joined: at once where nothing is in doubt, else one by one."""
    before, whole, run = _adjacent(every)
    in_doubt = _in_doubt(every, whole, run)
    before[in_doubt] = -1
    is_open = _stand_last(every.own, ~whole) & ~whole & every.has_station & ~in_doubt
    one_by_one = _OneByOne(every)
    for row in np.flatnonzero(in_doubt).tolist():
        one_by_one.take(row)
    for row, earlier in one_by_one.before.items():
        before[row] = earlier
    is_open[one_by_one.open_rows()] = True
    return _Joined(before, is_open)


def _adjacent(every: _Parts) -> tuple[Ints, Mask, Ints]:
    """Parts that go on what stands in front of them in a code, those of whole messages, and the run of each."""
    order = np.argsort(every.own, kind="stable")
    code, part, at = every.own[order], every.part[order], every.at[order]
    places = np.arange(len(order))
    follows = np.zeros(len(order), bool)
    follows[1:] = (code[1:] == code[:-1]) & (part[1:] == part[:-1] + 1)
    start = np.maximum.accumulate(np.where(follows, 0, places))
    good = (part[start] == 1) & (at - at[start] <= MOST_BETWEEN)
    is_end = good & (part == every.parts[order])
    whole_runs = start[is_end]
    whole = np.zeros(len(order), bool)
    inside = np.isin(start, whole_runs)
    whole[order] = inside
    before = np.full(len(order), -1)
    linked = np.flatnonzero(inside & follows)
    before[order[linked]] = order[linked - 1]
    run = np.empty(len(order), np.int64)
    run[order] = start
    return before, whole, run


def _in_doubt(every: _Parts, whole: Mask, run: Ints) -> Mask:
    """Parts of which some name no station and that can be joined in another way than as they stand.

    Of a code with no station at all these are the parts that are left over, and messages behind one, up to where it is
    given up; of one with and without stations, all.
    """
    bare = np.zeros(int(every.code.max()) + 1, bool)
    tagged = bare.copy()
    bare[every.code[~every.has_station]] = True
    tagged[every.code[every.has_station]] = True
    mixed = (bare & tagged)[every.code]
    left = ~whole & ~every.has_station
    keys = every.code * _BEHIND + every.at
    left_keys = np.sort(keys[left])
    since = np.searchsorted(left_keys, keys - MOST_BETWEEN, "left")
    near = np.searchsorted(left_keys, keys, "right") > since
    near = np.isin(run, run[near & ~every.has_station])
    in_doubt: Mask = mixed | left | near
    return in_doubt


def _stand_last(codes: Ints, lost: Mask) -> Mask:
    """Which sentences come behind all of their code that are parts of a message."""
    latest = np.full(codes.max(initial=-1) + 1, -1)
    used = np.flatnonzero(~lost)
    latest[codes[used]] = used  # they ascend: the last one stays
    stand_last: Mask = np.arange(len(codes)) > latest[codes]
    return stand_last


@dataclass(slots=True, eq=False)
class _Begun:
    """A message of which some parts have come."""

    station: bytes
    since: int
    rows: list[int]


@dataclass(slots=True)
class _Tangle:
    """Messages of which one has gone on, and nobody can say which: how many of their parts are still to come."""

    since: int
    awaited: int
    rows: list[int]


@dataclass(slots=True)
class _OneByOne:
    """Joins parts as they come; `before` says which sentence each one goes on.

    A loop, and no columns: what is dropped here decides what comes next. Few parts are ever in doubt.
    """

    every: _Parts
    before: dict[int, int] = field(default_factory=dict)
    _begun: dict[int, list[_Begun]] = field(default_factory=dict)
    _tangled: dict[int, list[_Tangle]] = field(default_factory=dict)

    def take(self, row: int) -> None:
        """Takes the next part."""
        station, at = self.every.station[row].as_py(), int(self.every.at[row])
        part, code = int(self.every.part[row]), int(self.every.code[row])
        begun = [b for b in self._begun.get(code, ()) if at - b.since <= MOST_BETWEEN]
        tangled = [
            t for t in self._tangled.get(code, ()) if at - t.since <= MOST_BETWEEN
        ]
        self._begun[code], self._tangled[code] = begun, tangled
        fitting = [b for b in begun if _fits(b, station, part)]
        own = [b for b in begun if station and b.station == station]
        fitting = [b for b in fitting if b in own] or fitting
        if part == 1:
            begun.append(_Begun(station, at, [row]))
        elif (len(fitting) == 1 or self._are_alike(fitting)) and (
            not tangled or fitting[0] in own
        ):
            self._go_on(fitting[0], row, station, begun)
            own = [b for b in own if b is not fitting[0]]
        else:  # which of them is meant nobody can say
            own += fitting
            self._tangle(fitting, row, tangled)
        begun[:] = [b for b in begun if b not in own]

    def _tangle(self, fitting: list[_Begun], row: int, tangled: list[_Tangle]) -> None:
        """Keeps in mind that parts are to come which may not be taken for those of the next message."""
        if len(fitting) > 1:
            left = int(self.every.parts[row] - self.every.part[row]) + 1
            rows = [each for b in fitting for each in b.rows]
            since = min(b.since for b in fitting)
            tangled.append(_Tangle(since, len(fitting) * left - 1, [*rows, row]))
        elif tangled and not fitting:
            tangled[0].awaited -= 1
            tangled[0].rows.append(row)
            if not tangled[0].awaited:
                del tangled[0]

    def open_rows(self) -> list[int]:
        """The parts of messages whose end is still to come."""
        begun = [b.rows for each in self._begun.values() for b in each]
        tangled = [
            t.rows
            for each in self._tangled.values()
            for t in each
            if self.every.end - t.since <= MOST_BETWEEN
        ]
        return [row for rows in begun + tangled for row in rows]

    def _go_on(
        self, one: _Begun, row: int, station: bytes, begun: list[_Begun]
    ) -> None:
        self.before[row] = one.rows[-1]
        one.rows.append(row)
        one.station = one.station or station
        if self.every.part[row] == self.every.parts[row]:
            begun.remove(one)

    def _are_alike(self, begun: list[_Begun]) -> bool:
        """Whether it is one message, that several stations heard: it does not matter which of them goes on."""
        heard = {
            tuple(self.every.payload[row].as_py() for row in b.rows) for b in begun
        }
        return len(heard) == 1


def _fits(begun: _Begun, station: bytes, part: int) -> bool:
    same = begun.station == station or _NO_STATION in (begun.station, station)
    return same and len(begun.rows) == part - 1


# --- what is heard in a payload ---

_LONGEST = 1024
"""Bytes of a line that is kept for the next payload: a sentence has 82, with its tag block some 200."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """Records and messages of a payload, those in front of it first.

    Attributes:
        lines: the records.
        own_start: where the payload's own bytes begin in their buffer.
        sentences: those of the records that are sentences.
        at: int64[n], how many of the sentences stand in front of each record; below 0 of one that came before.
        messages: what these make.
        fault: int8[n], why each record is no message; of those that are part of one `no_position`.
    """

    lines: Lines
    own_start: int
    sentences: Sentences
    at: Ints
    messages: _Messages
    fault: NDArray[np.int8]

    @property
    def earlier(self) -> int:
        """How many of the records came before the payload, and were counted then."""
        return int(np.searchsorted(self.lines.records.ends, self.own_start, "right"))

    def raw(self, which: Ints) -> pa.Array:
        """The bytes of some records of the payload, without what came before it."""
        records = self.lines.records.select(which + self.earlier)
        starts = np.maximum(records.starts, self.own_start)
        own = type(records)(records.buffer, starts, records.ends)
        return own.texts(RAW_LIMIT)

    def unfinished(self) -> Sequence[tuple[int, str]]:
        """The sentences whose messages may go on behind the payload, each with how many sentences ago it came.

        Of lines whose tag groups alone go on it is the tag block.
        """
        rows = self.sentences.rows[self.messages.open]
        received = self.sentences.received.take(
            pa.array(np.flatnonzero(self.messages.open))
        )
        texts = _texts(self.lines.sentences.select(rows).texts())
        lines = {
            row: f"{time}\n{text}" if time else text
            for row, time, text in zip(
                rows.tolist(), _texts(received), texts, strict=True
            )
        }
        blocks = awaited(self.lines.sentences.texts(), self.at)
        lines = {row: text.decode("latin-1") for row, text in blocks.items()} | lines
        behind = int(np.sum(self.at[self.sentences.rows] >= 0))
        pairs = ((behind - int(self.at[row]), lines[row]) for row in sorted(lines))
        return tuple(
            (ago, line)
            for ago, line in pairs
            if ago <= MOST_BETWEEN and len(line) <= _LONGEST
        )

    def received(self) -> str:
        """When the first sentence behind the payload was received, where a last line says so; else nothing."""
        lines = _texts(self.lines.rest.texts())
        return "".join(line for line in lines if len(line) <= _LONGEST)


def _heard_in(records: bytes, before: SaidBefore) -> _Heard:
    """What is heard in the records of a payload, given what was not finished before."""
    in_front = [text for _, text in before.unfinished] + [before.received] * bool(
        before.received
    )
    earlier = "".join(f"{text}\n" for text in in_front).encode("latin-1", "replace")
    ago = [min(max(count, 0), MOST_BETWEEN + 1) for count, _ in before.unfinished]
    lines = lines_of(earlier + records)
    at, sentences, fault = sentences_of(lines, -np.array(ago, np.int64))
    messages = _messages_of(sentences)
    parts = np.where(messages.lost, Reason.INCOMPLETE, Reason.NO_POSITION)
    fault[sentences.rows] = parts
    return _Heard(lines, len(earlier), sentences, at, messages, fault)


def _texts(values: pa.Array) -> list[str]:
    """Bytes as texts, a character each."""
    return [bytes(value).decode("latin-1") for value in values.to_pylist()]


# --- bits, six in each symbol (ITU-R M.1371-5) ---

_BITS = 6  # of a symbol
_TYPES = 64
_NO_PLACE = -1
_END = ord("@")  # of a text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where a number stands in messages of some types.

    Attributes:
        at: its first bit, by type.
        width: bits.
        signed: whether it is negative where its first bit is set.
        per: how many make a unit.
        none: the value that stands for "not available".
        most: the largest value that has a meaning; None: all have.
    """

    at: Mapping[int, int]
    width: int
    signed: bool = False
    per: int = 1
    none: int | None = None
    most: int | None = None


class _Bits:
    """The bits of messages.

    Args:
        messages: whole ones.
    """

    def __init__(self, messages: _Messages) -> None:
        codes = messages.data - np.uint8(48)
        self._symbols = np.append(
            codes - 8 * (codes > 40).astype(np.uint8), np.uint8(0)
        )
        self._starts, self._ends = messages.starts, messages.ends
        self.count = _BITS * (messages.ends - messages.starts) - messages.fill
        self.type = self.unsigned(np.zeros(len(self.count), np.int64), _BITS)

    def unsigned(self, at: Ints, width: int, rows: Ints | slice = slice(None)) -> Ints:
        """The numbers of `width` bits that start at a bit of each message; bits behind its end are 0."""
        first, count = at // _BITS, (width + 2 * _BITS - 2) // _BITS
        value = np.zeros(len(at), np.int64)
        for step in range(count):
            place = self._starts[rows] + first + step
            inside = place < self._ends[rows]
            symbol = self._symbols[np.where(inside, place, -1)]
            value = value << _BITS | np.where(inside, symbol, 0)
        shift = (first + count) * _BITS - at - width
        return value >> shift & (1 << width) - 1

    def number(self, layout: _Layout) -> tuple[Ints, Mask]:
        """The values of a number, and bool[n]: which messages have it, whole and with a meaning."""
        at = _lookup(layout.at)[self.type]
        value = self.unsigned(np.maximum(at, 0), layout.width)
        if layout.signed:
            value -= (value >> layout.width - 1) << layout.width
        has = self.is_whole(layout)
        if layout.none is not None:
            has &= value != layout.none
        if layout.most is not None:
            has &= value <= layout.most
        return value, has

    def is_whole(self, layout: _Layout) -> Mask:
        """Which messages are long enough for the number that their type has."""
        at = _lookup(layout.at)[self.type]
        is_whole: Mask = (at != _NO_PLACE) & (at + layout.width <= self.count)
        return is_whole

    def text(self, at: Mapping[int, int], size: int, only: Mask) -> pa.Array:
        """The texts of `size` symbols that start at a bit by type; null where there is none, or nothing but blanks.

        Args:
            at: the first bit, by type.
            size: symbols.
            only: which messages are looked at.
        """
        first = _lookup(at)[self.type]
        rows = np.flatnonzero(only & (first != _NO_PLACE))
        symbols = np.empty((len(rows), size), np.uint8)
        for step in range(size):
            place = first[rows] + _BITS * step
            symbols[:, step] = self.unsigned(place, _BITS, rows)
        letters = np.where(symbols < 32, symbols + np.uint8(64), symbols)
        ended = np.logical_or.accumulate(letters == _END, axis=1)
        letters[ended] = ord(" ")
        offsets = np.arange(0, (len(rows) + 1) * size, size, dtype=np.int32)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes())]
        texts = pa.Array.from_buffers(pa.string(), len(rows), buffers)
        texts = pc.utf8_trim_whitespace(texts)
        filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
        places = np.full(len(self.type), -1)
        places[rows] = np.arange(len(rows))
        return filled.take(pa.array(places, mask=places < 0))


def _lookup(at: Mapping[int, int]) -> Ints:
    places = np.full(_TYPES, _NO_PLACE)
    places[list(at)] = list(at.values())
    return places


# --- what ships say ---

_CLASS_A = (1, 2, 3)
_LAST_TYPE = 28
_LONG_RANGE = 27
_DEGREE, _COARSE_DEGREE = 600_000, 600  # in a minute's 10,000th, and its 10th


def _class_a(at: int) -> dict[int, int]:
    return dict.fromkeys(_CLASS_A, at)


def _degrees(at: dict[int, int], *, width: int, per: int, none: int) -> _Layout:
    return _Layout(at=at, width=width, signed=True, per=per, none=none * per)


_LONGITUDE = {**_class_a(61), 4: 79, 9: 61, 18: 57, 19: 57, 21: 164}
_LATITUDE = {**_class_a(89), 4: 107, 9: 89, 18: 85, 19: 85, 21: 192}
_SPEED = {**_class_a(50), 18: 46, 19: 46}
_COURSE = {**_class_a(116), 9: 116, 18: 112, 19: 112}
_MMSI = _Layout(at=dict.fromkeys(range(64), 8), width=30)
_NUMBERS: Mapping[str, tuple[_Layout, ...]] = {
    "longitude": (
        _degrees(_LONGITUDE, width=28, per=_DEGREE, none=181),
        _degrees({_LONG_RANGE: 44}, width=18, per=_COARSE_DEGREE, none=181),
    ),
    "latitude": (
        _degrees(_LATITUDE, width=27, per=_DEGREE, none=91),
        _degrees({_LONG_RANGE: 62}, width=17, per=_COARSE_DEGREE, none=91),
    ),
    "sog": (
        _Layout(at=_SPEED, width=10, per=10, none=1023),
        _Layout(at={9: 50}, width=10, none=1023),
        _Layout(at={_LONG_RANGE: 79}, width=6, none=63),
    ),
    "cog": (
        _Layout(at=_COURSE, width=12, per=10, most=3599),
        _Layout(at={_LONG_RANGE: 85}, width=9, most=359),
    ),
    "heading": (_Layout(at={**_class_a(128), 18: 124, 19: 124}, width=9, most=359),),
    "status": (_Layout(at={**_class_a(38), _LONG_RANGE: 40}, width=4, none=15),),
    "accuracy": (
        _Layout(
            at={**_class_a(60), 4: 78, 9: 60, 18: 56, 19: 56, 21: 163, 27: 38}, width=1
        ),
    ),
    "altitude": (_Layout(at={9: 38}, width=12, none=4095),),
}
"""Numbers of a position; a column is where its type has it."""

_DIMENSIONS = {5: 240, 19: 271, 21: 219, 24: 132}
_SHIPTYPE = {5: 232, 19: 263, 24: 40}
_TEXTS: Mapping[str, tuple[dict[int, int], int]] = {
    "name": ({5: 112, 19: 143, 21: 43, 24: 40}, 20),
    "callsign": ({5: 70, 24: 90}, 7),
    "destination": ({5: 302}, 20),
}
"""Texts that a ship says of itself: where, and how many symbols."""

_TOLD_LATER = (*_TEXTS, "shiptype", "imo", "draught", "length", "width")
"""Columns that a position has from the message in which its ship said them last."""

_PART = _Layout(at={24: 38}, width=2)  # of type 24: 0 has the name, 1 the rest
_AUXILIARY = 98  # an MMSI that starts so is a ship's boat: in the place of its size it names the ship


def read_ais(payload: bytes, stream: FormatSettings) -> Records:
    """The sentences of a payload; see `ais`."""
    before, records = said_before(payload)
    heard = _heard_in(records, before)
    ships = _Ships(heard, before)
    fault = heard.fault
    fault[heard.sentences.rows[heard.messages.last]] = ships.kinds
    is_fix = pa.array(ships.kinds == Reason.NONE)
    fields = {name: ships.column(name).filter(is_fix) for name in columns_read(stream)}
    return Records(fault=fault[heard.earlier :], fields=fields, raw=heard.raw)


def said_in(payload: bytes, stream: FormatSettings) -> Said:
    """What a payload says that payloads behind it need: the columns that the stream's settings name, and open ends.

    Args:
        payload: with what was not finished before in front.
        stream: the settings.
    """
    before, records = said_before(payload)
    heard = _heard_in(records, before)
    ships = _Ships(heard, NOTHING)
    wanted = [name for name in columns_read(stream) if name in _TOLD_LATER]
    asking = ships.mmsi[ships.kinds == Reason.NONE] if wanted else []
    return Said(
        asking=[str(mmsi) for mmsi in dict.fromkeys(asking)],
        objects=ships.last(wanted),
        unfinished=heard.unfinished(),
        received=heard.received(),
    )


def made_at(payload: bytes) -> pa.Array:
    """When the sentences of a payload were received (us UTC), those of a message together; null where none says it."""
    heard = _heard_in(said_before(payload)[1], NOTHING)
    sentences, messages = heard.sentences, heard.messages
    times = sentences.times_us()
    together = np.maximum(times[messages.first], times[messages.last])
    times[messages.first] = times[messages.last] = together
    us = np.zeros(len(heard.fault), np.int64)
    us[sentences.rows] = times
    return pa.array(us, pa.timestamp("us", "UTC"), mask=us == 0)


def _kinds(bits: _Bits) -> NDArray[np.int8]:
    """Which messages are positions (Reason.NONE), which are about something else, too short, or of no known type."""
    has_place, is_long = (np.zeros(len(bits.type), bool) for _ in range(2))
    for layout in _NUMBERS["latitude"]:
        has_place |= np.isin(bits.type, list(layout.at))
        is_long |= bits.is_whole(layout)
    kinds = np.where(has_place & is_long, Reason.NONE, Reason.NO_POSITION)
    kinds[(bits.type == 0) | (bits.type > _LAST_TYPE)] = Reason.UNREADABLE
    kinds[(has_place & ~is_long) | (bits.count < _MMSI.width + 8)] = Reason.INCOMPLETE
    return kinds.astype(np.int8)


class _Ships:
    """The columns of messages: their own, or what their ships said last.

    Args:
        heard: the messages.
        before: what ships said before.
    """

    def __init__(self, heard: _Heard, before: SaidBefore) -> None:
        self._sentences, self._messages = heard.sentences, heard.messages
        self._bits = bits = _Bits(heard.messages)
        self.kinds = _kinds(bits)
        self.mmsi, _ = bits.number(_MMSI)
        self._known = LastKnown(pa.array(self.mmsi), before)
        part, is_24 = bits.number(_PART)
        self._is_name = ~is_24 | (part == 0)
        self._is_rest = ~is_24 | (part == 1)

    def column(self, name: str) -> pa.Array:
        """The values of a column, one for each message: its own, or what its ship said last."""
        own: Mapping[str, Callable[[], pa.Array]] = {
            "mmsi": lambda: pa.array(self.mmsi),
            "type": lambda: pa.array(self._bits.type),
            "time": self._times,
        }
        if name in own:
            return own[name]()
        if name in _NUMBERS:
            return self._number(name)
        if name not in _TOLD_LATER:
            return pa.nulls(len(self.mmsi), pa.string())
        return self._known.values(name, self._said(name))

    def last(self, names: Sequence[str]) -> Mapping[str, Mapping[str, Value]]:
        """By MMSI what each ship has said of some columns at the end."""
        return self._known.last({name: self._said(name) for name in names})

    def _times(self) -> pa.Array:
        times = self._sentences.times_us()
        last, first = times[self._messages.last], times[self._messages.first]
        us = np.where(last == 0, first, last)
        return pa.array(us, pa.timestamp("us", "UTC"), mask=us == 0)

    def _number(self, name: str) -> pa.Array:
        layouts = _NUMBERS[name]
        values, known = np.zeros(len(self.mmsi)), np.zeros(len(self.mmsi), bool)
        for layout in layouts:
            value, has = self._bits.number(layout)
            values = np.where(has, value / layout.per, values)
            known |= has
        if name == "accuracy":
            return pa.array(values > 0, mask=~known)
        is_whole = all(layout.per == 1 for layout in layouts)
        return pa.array(values.astype(np.int64) if is_whole else values, mask=~known)

    def _said(self, name: str) -> pa.Array:
        """What a message says of its ship."""
        if name in _TEXTS:
            only = self._is_name if name == "name" else self._is_rest
            return self._bits.text(*_TEXTS[name], only)
        if name == "length":
            return self._size(0, 9)
        if name == "width":
            return self._size(18, 6)
        return self._static(name)

    def _static(self, name: str) -> pa.Array:
        layouts = {
            "shiptype": _Layout(at=_SHIPTYPE, width=8, none=0),
            "imo": _Layout(at={5: 40}, width=30, none=0),
            "draught": _Layout(at={5: 294}, width=8, none=0, per=10),
        }
        value, has = self._bits.number(layouts[name])
        has &= self._is_rest
        scaled = value / 10 if name == "draught" else value
        return pa.array(scaled, mask=~has)

    def _size(self, behind: int, width: int) -> pa.Array:
        """Metres from one end to the other, by the two distances of the antenna to them."""
        total = np.zeros(len(self.mmsi), np.int64)
        known = self._is_rest & (self.mmsi // 10_000_000 != _AUXILIARY)
        for step in (behind, behind + width):
            at = {kind: first + step for kind, first in _DIMENSIONS.items()}
            value, has = self._bits.number(_Layout(at=at, width=width))
            total, known = total + value, known & has
        return pa.array(total, mask=~known | (total == 0))
