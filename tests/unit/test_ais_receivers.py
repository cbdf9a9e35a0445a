"""AIS from several receivers in one feed: each ship is called what it calls itself, or nothing at all."""

import itertools
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyais.encode import encode_dict

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.replay.memory import Memory
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B7")

SHIPS = StreamSettings(
    name="ships",
    format="ais",
    columns=Columns(object="mmsi", event_ts="time", x="longitude", y="latitude"),
    attributes={"name": "string", "destination": "string"},
    max_ahead_s=None,
)
UNTIMED = replace(SHIPS, columns=replace(SHIPS.columns, event_ts=None))


def tagged(tags: str, sentence: str) -> str:
    return f"\\{tags}*{reduce(xor, tags.encode(), 0):02X}\\{sentence}"


def static(mmsi: int, name: str, destination: str, *, seq: int) -> list[str]:
    """The two sentences of a message of type 5."""
    said = {"type": 5, "mmsi": mmsi, "shipname": name, "destination": destination}
    return encode_dict(said, talker_id="AI", sentence_type="VDM", seq_id=seq)


def position(mmsi: int) -> str:
    (sentence,) = encode_dict({"type": 1, "mmsi": mmsi, "lon": 10.0, "lat": 55.0})
    return sentence


def told(lines: list[str], stream: StreamSettings = UNTIMED) -> list[tuple]:
    decoded = decode("\n".join(lines).encode(), stream, arrival_us=0)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows == len(lines)
    return [
        (row["object"], row["name"], row["destination"])
        for row in decoded.fixes.to_pylist()
    ]


def reasons(lines: list[str]) -> Counter:
    decoded = decode("\n".join(lines).encode(), UNTIMED, arrival_us=0)
    return Counter(decoded.rejects["reason"].to_pylist())


ALFA = static(219000021, "ALFA ONE", "A" * 20, seq=1)
BRAVO = static(219000022, "BRAVO TWO", "B" * 20, seq=1)
SEEN = [position(219000021), position(219000022)]
OWN_NAMES = [
    ("219000021", "ALFA ONE", "A" * 20),
    ("219000022", "BRAVO TWO", "B" * 20),
]
NO_NAMES = [("219000021", None, None), ("219000022", None, None)]


def test_parts_of_two_stations_are_told_apart_by_their_tag_blocks():
    first, second = (
        [tagged(f"s:{station},c:1700000000", one) for one in parts]
        for station, parts in (("st1", ALFA), ("st2", BRAVO))
    )
    mixed = [first[0], second[0], first[1], second[1]]
    assert told(mixed + SEEN) == OWN_NAMES
    assert reasons(mixed) == {"no_position": 4}


def test_parts_of_two_stations_are_told_apart_by_their_last_columns():
    first = [f"{one},r003669710,1272412827" for one in ALFA]
    second = [f"{one},b2003669711,1272412827" for one in BRAVO]
    assert told([first[0], second[0], first[1], second[1], *SEEN]) == OWN_NAMES


def test_parts_are_told_apart_by_their_tag_groups():
    first, second = (
        [tagged(f"g:{part + 1}-2-{group}", one) for part, one in enumerate(parts)]
        for group, parts in ((33, ALFA), (34, BRAVO))
    )
    assert told([first[0], second[0], first[1], second[1], *SEEN]) == OWN_NAMES


def test_a_group_of_which_the_first_line_alone_names_its_station_is_of_that_station():
    first, second = (
        [tagged(f"g:1-2-{g},s:{s}", parts[0]), tagged(f"g:2-2-{g}", parts[1])]
        for g, s, parts in (("7", "st1", ALFA), ("8", "st2", BRAVO))
    )
    assert told([first[0], second[0], first[1], second[1], *SEEN]) == OWN_NAMES


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 2, 3, 1), (2, 0, 1, 3)])
def test_parts_that_nothing_tells_apart_are_dropped_and_counted(order):
    lines = [*ALFA, *BRAVO]
    mixed = [lines[each] for each in order]
    assert told(mixed + SEEN) == NO_NAMES
    assert reasons(mixed) == {"incomplete": 4}


@pytest.mark.parametrize("cuts", [[], [1], [2], [3], [4], [5], [2, 4], [3, 5]])
def test_an_end_that_is_still_to_come_is_not_taken_for_that_of_the_next_message(cuts):
    """Of two ships one has ended, and nobody can say which: the other's end comes behind the next beginning."""
    again = static(219000021, "ALFA ONE", "C" * 20, seq=1)
    mixed = [ALFA[0], BRAVO[0], ALFA[1], again[0], BRAVO[1], again[1]]
    later = static(219000021, "ALFA ONE", "A" * 20, seq=1)
    assert through_memory([*mixed, *SEEN], cuts) == NO_NAMES
    assert through_memory([*mixed, *later, SEEN[0]], cuts) == OWN_NAMES[:1]


def test_two_stations_that_number_their_groups_alike_are_not_mixed():
    first, second = (
        [tagged(f"g:1-2-7,s:{s}", parts[0]), tagged("g:2-2-7", parts[1])]
        for s, parts in (("st1", ALFA), ("st2", BRAVO))
    )
    assert told([first[0], second[0], first[1], second[1], *SEEN]) == NO_NAMES


def test_the_same_message_heard_by_two_stations_that_nobody_names_is_whole():
    assert told([ALFA[0], ALFA[0], ALFA[1], ALFA[1], SEEN[0]]) == OWN_NAMES[:1]


def test_a_message_behind_one_that_lacks_its_end_is_whole_where_it_is_of_that_station():
    lost, whole = ([tagged("s:st1", one) for one in parts] for parts in (ALFA, BRAVO))
    assert told([lost[0], *whole, *SEEN]) == [NO_NAMES[0], OWN_NAMES[1]]


def test_a_line_of_a_tag_group_has_the_time_of_its_first_one():
    lines = [
        tagged(
            "g:1-2-1234,s:st1,c:1700000000", "$ARVSI,r003669945,,233843.0,1187,-91,0*2A"
        ),
        tagged("g:2-2-1234", SEEN[0]),
        tagged("1G2:77,c:1700000005", SEEN[1]),
        tagged("2G2:77", SEEN[1]),
    ]
    decoded = decode("\n".join(lines).encode(), SHIPS, arrival_us=0)
    times = [us // 1_000_000 for us in decoded.fixes["event_ts"].to_pylist()]
    assert times == [1_700_000_000, 1_700_000_005, 1_700_000_005]
    assert decoded.rejects["reason"].to_pylist() == ["no_position"]


def test_a_line_of_a_group_that_two_stations_have_begun_has_no_time():
    lines = [
        tagged("g:1-2-9,s:st1,c:1700000000", SEEN[0]),
        tagged("g:1-2-9,s:st2,c:1700000060", SEEN[0]),
        tagged("g:2-2-9", SEEN[1]),
    ]
    decoded = decode("\n".join(lines).encode(), SHIPS, arrival_us=0)
    assert decoded.fixes["event_ts"].to_pylist() == [
        1_700_000_000_000_000,
        1_700_000_060_000_000,
    ]
    assert decoded.rejects["reason"].to_pylist() == ["missing_time"]


@st.composite
def two_receivers(draw: st.DrawFn) -> tuple[list[str], list[str], list[bool]]:
    """What two receivers of different ships give, whose sequence numbers are alike, and whose turn it is."""
    feeds = []
    for station in (1, 2):
        lines: list[str] = []
        for number in range(draw(st.integers(1, 4))):
            mmsi = 219_000_000 + 10 * station + draw(st.integers(0, 2))
            name = f"{'AB'[station - 1] * 6} {number}"
            seq = draw(st.integers(0, 1))
            lines += [*static(mmsi, name, name[:1] * 20, seq=seq), position(mmsi)]
        feeds.append(lines)
    total = sum(map(len, feeds))
    return (*feeds, draw(st.lists(st.booleans(), min_size=total, max_size=total)))


def mixed_of(first: list[str], second: list[str], turns: list[bool]) -> list[str]:
    left = [list(reversed(first)), list(reversed(second))]
    mixed = []
    for turn in turns:
        mine = left[turn] or left[not turn]
        mixed.append(mine.pop())
    return mixed


@tries(40)
@given(two_receivers(), st.lists(st.integers(0, 24), max_size=5))
def test_any_order_of_two_receivers_lines_gives_what_each_gives_alone(feeds, cuts):
    *plain, turns = feeds
    first, second = (
        [tagged(f"s:st{number},c:17000000{number:02}", line) for line in lines]
        for number, lines in enumerate(plain)
    )
    mixed = mixed_of(first, second, turns)
    alone = Counter(told(first)) + Counter(told(second))
    assert Counter(told(mixed)) == alone
    assert Counter(through_memory(mixed, cuts)) == alone


@tries(40)
@given(two_receivers(), st.lists(st.integers(0, 24), max_size=5))
def test_lines_of_receivers_without_names_never_name_a_ship_wrongly(feeds, cuts):
    first, second, turns = feeds
    mixed = mixed_of(first, second, turns)
    for _, name, destination in told(mixed):
        assert (name is None) == (destination is None)
        assert name is None or destination == name[0] * 20
    assert Counter(through_memory(mixed, cuts)) == Counter(told(mixed))


@tries(40)
@given(
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from("78"), st.booleans())),
    st.lists(st.integers(0, 24), max_size=5),
)
def test_lines_of_tag_groups_have_the_same_times_wherever_a_feed_is_cut(lines, cuts):
    told_lines = [
        tagged(f"g:{line}-2-{group}" + f",c:17000000{number:02}" * timed, SEEN[0])
        for number, (line, group, timed) in enumerate(lines)
    ]
    whole = decode("\n".join(told_lines).encode(), SHIPS, arrival_us=0)
    assert times_of(through_memory_decoded(told_lines, cuts, SHIPS)) == times_of(
        [whole]
    )


def through_memory(lines: list[str], cuts: list[int]) -> list[tuple]:
    """The fixes of a feed that comes in payloads."""
    return [
        (row["object"], row["name"], row["destination"])
        for decoded in through_memory_decoded(lines, cuts, UNTIMED)
        for row in decoded.fixes.to_pylist()
    ]


def through_memory_decoded(lines, cuts, stream) -> list:
    memory, borders = Memory(stream), sorted({0, len(lines), *cuts})
    payloads = [
        "".join(f"{line}\n" for line in lines[start:stop]).encode()
        for start, stop in itertools.pairwise(borders)
        if lines[start:stop]
    ]
    return [
        decode(memory.put_in_front(payload, arrival_us=0), stream, arrival_us=0)
        for payload in payloads
    ]


def times_of(decoded: list) -> list:
    return [us for one in decoded for us in one.fixes["event_ts"].to_pylist()]
