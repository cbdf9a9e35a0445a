"""Histories of servers on a simulated machine: posts, keys, listeners, kills, power cuts, disks that fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.log.log import Log
from st_common.log.packs import PACKS
from st_common.server import intake
from st_common.server.changes import Hub
from st_common.server.intake import Intake
from st_common.sources import writer
from st_common.sources.offsets import Offsets
from st_common.storage import local as disks
from tests.kit import served_histories
from tests.kit.effort import tries
from tests.kit.simulated_system import System

SEEDS = st.integers(0, (1 << 32) - 1)
MOST = 600


@pytest.mark.spec("S2", "S8")
@tries(30)
@given(SEEDS)
def test_whatever_breaks_each_request_is_answered_for_itself_and_each_change_told_once(
    seed,
):
    served_histories.live(seed)


def test_a_history_of_servers_is_its_seed():
    assert served_histories.live(7) == served_histories.live(7)


def test_histories_of_servers_have_all_that_can_break():
    missing = set(served_histories.Served.__slots__) - {"seed"}
    for seed in range(MOST):
        one = served_histories.live(seed)
        missing = {what for what in missing if not getattr(one, what)}
        if not missing:
            break
    assert missing == set()


# --- bugs that are planted: each breaks some history ------------------------------------------------------------------


def nothing(*_args, **_kwargs):
    """What should be done is not done."""


def none(*_args, **_kwargs):
    """Nothing is known."""
    return set()


def from_the_first(self, mine, last):
    """One who resumes is told all that waits for him."""
    return real_news(self, mine, (-1, 0))


async def given_up(self, arrival, key, mark):
    """What is on its way ends with its sender, and nobody knows of it."""
    self._keys.pop(key, None)
    at = await self._stored(
        intake.replace(arrival, places={f"key:{key}": intake.here(mark)})
    )
    self._keys[key] = intake._Known(at.position, mark)
    return at


async def past_what_waits(self, query, after):
    """Who resumes begins with what comes from now on."""
    return await real_join(self, query, None)


def without_sync_of_files(system, handle):
    """Names are given before the bytes behind them are synced."""
    if handle._inode is None:
        real_fsync(system, handle)


def without_the_folder_of_packs(folder):
    """What lies in packs goes before their names are durable."""
    if folder.name != PACKS:
        real_sync_folder(folder)


def without_the_bytes_of_packs(system, handle):
    """What lies in packs goes before their bytes are durable."""
    if ".pack" not in handle.path:
        real_fsync(system, handle)


real_news, real_join = Hub._news, Hub.join
real_fsync, real_sync_folder = System.fsync, disks._sync_folder


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param((writer, "_own_places", none), id="keys of others move"),
        pytest.param((Offsets, "announce", nothing), id="keys are not announced"),
        pytest.param((Hub, "_news", from_the_first), id="told again"),
        pytest.param((Hub, "join", past_what_waits), id="resumed too late"),
        pytest.param(
            (Intake, "_stored_once", given_up), id="what is on its way is not known"
        ),
        pytest.param((Intake, "_learn", nothing), id="keys of the log are not known"),
        pytest.param((Log, "sync", nothing), id="told before it is durable"),
        pytest.param((disks, "_sync_folder", nothing), id="names are not synced"),
        pytest.param(
            (System, "fsync", without_sync_of_files), id="bytes are not synced"
        ),
        pytest.param(
            (disks, "_sync_folder", without_the_folder_of_packs),
            id="names of packs are not synced",
        ),
        pytest.param(
            (System, "fsync", without_the_bytes_of_packs),
            id="bytes of packs are not synced",
        ),
    ],
)
def test_a_planted_bug_of_servers_breaks_some_history(monkeypatch, plant):
    monkeypatch.setattr(*plant)
    with pytest.raises(AssertionError):
        all(served_histories.live(seed) for seed in range(MOST))
