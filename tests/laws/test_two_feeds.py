"""A stream that two queries feed has the answers of the fixes of both, however fast each of them is."""

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.delivery.feeding_query import FeedingQuery
from st_common.delivery.stream_feed import StreamFeed
from tests.kit.effort import tries
from tests.kit.two_feeds import (
    QUERIES,
    Place,
    came,
    expected,
    feeder,
    home_of,
    ran,
    settings_of,
    told,
)

OBJECTS = {"fast": "abc", "slow": "cde"}  # one of them reports to both
SECONDS = 60


class KillError(Exception):
    """A feeder dies."""


def fixes(chance: Random, stream: str) -> list[Place]:
    """Fixes of a source, at most 3 s out of order: its own lateness takes them in."""
    # Of one that is in both no two fixes are of one time.
    seconds = range(0 if stream == "fast" else 1, SECONDS, 2)
    number = chance.randint(1, len(seconds))
    places = [
        Place(chance.choice(OBJECTS[stream]), second, chance.randint(0, 60))
        for second in sorted(chance.sample(seconds, number))
    ]
    return sorted(places, key=lambda one: one.second + chance.random() * 2.9)


def lived(chance: Random, home: Home, places: dict[str, list[Place]]) -> None:
    """Lets sources, feeders and the engine of the fed stream take turns until the sources are over."""
    share = chance.choice((0.01, 0.1, 0.5, 0.9, 0.99))
    feeds = {query: feeder(home, query) for query in QUERIES}
    left = {stream: list(of) for stream, of in places.items()}
    while any(left.values()):
        stream = "fast" if chance.random() < share else "slow"
        stream = stream if left[stream] else next(s for s in left if left[s])
        part = chance.randint(1, 15)
        came(home, stream, left[stream][:part], end=part >= len(left[stream]))
        left[stream] = left[stream][part:]
        for _ in range(chance.randint(0, 4)):
            query = chance.choice(list(QUERIES))
            what = chance.choice(("poll", "poll", "again", "kill"))
            take_turn(home, feeds, query, what)
        if chance.random() < 0.1:
            ran(home)


def take_turn(home: Home, feeds: dict[str, StreamFeed], query: str, what: str) -> None:
    """A feeder looks once; it starts again; or it dies after it has written, before it notes what."""
    if what == "kill":
        with (
            patch.object(FeedingQuery, "write_note", side_effect=KillError),
            suppress(KillError),
        ):
            feeds[query].poll()
    if what != "poll":
        feeds[query] = feeder(home, query)
    feeds[query].poll()


@pytest.mark.spec("S1", "W6", "X2", "X7")
@tries(4)
@given(st.integers(0, (1 << 32) - 1), st.sampled_from([0, 5]))
def test_the_answers_are_those_of_the_fixes_of_both(seed: int, lateness_s: int):
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        home = home_of(Path(folder) / "home", lateness_s=lateness_s)
        places = {stream: fixes(chance, stream) for stream in OBJECTS}
        lived(chance, home, places)
        for query in (*QUERIES, *QUERIES):  # each says to the other that it is over
            feeder(home, query).run()
        ran(home)
        assert told(home) == expected(*places.values())
        assert all(one.holds for one in verify(home, settings_of(home, "both")))
