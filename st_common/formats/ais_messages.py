r"""Which sentences of AIS make a message.

The parts of a message have the same talker, count, sequence number, channel and tag group, come in their order, and are
of one station, where the tag block (`s:`) or a last column (`,b003669710,`) names it:

    \s:st1*..\!AIVDM,2,1,1,A,55NB..     station st1, its message 1         ->   part of ALFA
    \s:st2*..\!AIVDM,2,1,1,A,53@n..     st2 counts its own messages        ->   part of BRAVO
    \s:st1*..\!AIVDM,2,2,1,A,8888..     st1 again                          ->   the end of ALFA

Parts that name no station go on what is begun if one message alone can be meant. Where two may be, neither is made of
them: half of one ship's message behind half of another's would read well, and be wrong.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.ais_sentences import MOST_BETWEEN, Sentences
from st_common.formats.nmea_sums import bytes_of
from st_common.formats.spans import Bytes, Ints, Mask

_BEHIND = 1 << 40  # more sentences than a payload has
_NO_STATION = b""


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


def messages_of(found: Sentences) -> Messages:
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
    return Messages(data, *at, fill, first, last, lost, is_open & lost)


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

    `own` is the code of both; parts with the same one are of the same message, unless the station is unknown.
    """

    code: Ints
    own: Ints
    station: pa.Array
    has_station: Mask
    part: Ints
    parts: Ints
    at: Ints
    payload: pa.Array


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
class _OneByOne:
    """Joins parts as they come; `before` says which sentence each one goes on.

    A loop, and no columns: what is dropped here decides what comes next. Few parts are ever in doubt.
    """

    every: _Parts
    before: dict[int, int] = field(default_factory=dict)
    _begun: dict[int, list[_Begun]] = field(default_factory=dict)

    def take(self, row: int) -> None:
        """Takes the next part."""
        station, at = self.every.station[row].as_py(), int(self.every.at[row])
        part, code = int(self.every.part[row]), int(self.every.code[row])
        begun = [b for b in self._begun.get(code, ()) if at - b.since <= MOST_BETWEEN]
        self._begun[code] = begun
        fitting = [b for b in begun if _fits(b, station, part)]
        own = [b for b in begun if station and b.station == station]
        fitting = [b for b in fitting if b in own] or fitting
        if part == 1:
            begun.append(_Begun(station, at, [row]))
        elif len(fitting) == 1 or self._are_alike(fitting):
            self._go_on(fitting[0], row, station, begun)
            own = [b for b in own if b is not fitting[0]]
        else:  # which of them is meant nobody can say
            own += fitting
        begun[:] = [b for b in begun if b not in own]

    def open_rows(self) -> list[int]:
        """The parts of messages whose end is still to come."""
        return [row for each in self._begun.values() for b in each for row in b.rows]

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
