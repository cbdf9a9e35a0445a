"""One owner per stream: real processes take, hold, lose and give back leases."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from st_common.errors import FencedError
from st_common.operations.lease import (
    FOREIGN_BEAT_S,
    Lease,
    beat,
    check,
    current,
    is_held,
    release,
    take,
)
from st_common.operations.process import Owner, owner_of, start_of, this_process
from st_common.operations.records import read_record, write_record

HOLD = """
import sys, time
from pathlib import Path
from st_common.operations.lease import take
take(Path(sys.argv[1]), now_us=int(time.time() * 1e6), force=sys.argv[2:] == ["force"])
print("taken", flush=True)
time.sleep(60)
"""


def now_us() -> int:
    return time.time_ns() // 1000


def holder(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "taken\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.spec("X6")
def test_a_lease_is_refused_while_its_owner_lives_and_given_when_it_was_killed(
    tmp_path: Path,
) -> None:
    other = holder(tmp_path)
    try:
        with pytest.raises(FencedError, match=f"run by process {other.pid}") as refused:
            take(tmp_path, now_us=now_us())
        assert refused.value.exit_code == 4
    finally:
        other.kill()  # not collected yet: a zombie, which is dead all the same
    deadline = time.monotonic() + 10
    while is_held(current(tmp_path), now_us=now_us()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert take(tmp_path, now_us=now_us()).epoch == 2
    end(other)


@pytest.mark.spec("X6")
def test_an_owner_that_was_taken_over_is_fenced_at_its_next_look(
    tmp_path: Path,
) -> None:
    mine = take(tmp_path, now_us=now_us())
    check(mine)
    other = holder(tmp_path, "force")
    try:
        for look in (lambda: check(mine), lambda: beat(mine, now_us=now_us())):
            with pytest.raises(FencedError, match="epoch 2"):
                look()
        assert current(tmp_path).owner.pid == other.pid, (
            "the beat of a fenced owner must not overwrite the lease"
        )
    finally:
        end(other)


def test_epochs_only_grow_and_a_released_stream_is_free(tmp_path: Path) -> None:
    first = take(tmp_path, now_us=1)
    release(first)
    assert not is_held(current(tmp_path), now_us=2)
    second = take(tmp_path, now_us=3)
    assert (first.epoch, second.epoch) == (1, 2)
    release(first)  # too late: it owns nothing any more
    assert is_held(current(tmp_path), now_us=4)
    assert beat(second, now_us=5).beat_ts == current(tmp_path).beat_ts == 5


def test_a_lease_that_was_removed_fences_its_owner(tmp_path: Path) -> None:
    mine = take(tmp_path, now_us=1)
    (tmp_path / "lease.json").unlink()
    with pytest.raises(FencedError, match="removed"):
        check(mine)


def test_an_owner_on_another_host_counts_as_long_as_it_beats(tmp_path: Path) -> None:
    lease = Lease(
        folder=tmp_path,
        epoch=1,
        owner=Owner(host="elsewhere", pid=1, started_s=0.0),
        beat_ts=1_000_000,
    )
    assert is_held(lease, now_us=1_000_000 + int(FOREIGN_BEAT_S * 1e6) - 1)
    assert not is_held(lease, now_us=1_000_000 + int(FOREIGN_BEAT_S * 1e6))
    set_back = replace(lease, beat_ts=1_000_000 + int(FOREIGN_BEAT_S * 1e6))
    assert not is_held(
        set_back, now_us=1_000_000
    )  # the clock was set back: who lives has beaten by it since


def test_a_later_process_with_the_same_pid_is_not_the_owner(tmp_path: Path) -> None:
    me = this_process()
    write_record(
        tmp_path / "lease.json",
        {"epoch": 7, "host": me.host, "pid": me.pid, "started_s": me.started_s - 60},
    )
    assert not is_held(current(tmp_path), now_us=now_us())
    assert take(tmp_path, now_us=now_us()).epoch == 8


@pytest.mark.spec("S2")
def test_a_clock_that_was_set_takes_no_stream_from_a_living_engine(
    tmp_path: Path,
) -> None:
    me = this_process()
    for stepped_s in (-3600, 3600):
        mine = Lease(
            folder=tmp_path,
            epoch=1,
            owner=replace(me, started_s=me.started_s + stepped_s),
            beat_ts=0,
        )
        assert is_held(mine, now_us=now_us())


@pytest.mark.spec("S2")
@pytest.mark.parametrize(
    ("other", "held"),
    [
        ({"ticks": 1}, (False, False)),
        ({"boot": "before"}, (False, False)),
        ({"namespace": "pid:[1]"}, (True, False)),
    ],
    ids=["another process", "before a restart of the machine", "another container"],
)
def test_an_owner_is_known_by_boot_namespace_and_start(
    tmp_path: Path, other: dict[str, object], held: tuple[bool, bool]
) -> None:
    lease = Lease(
        folder=tmp_path, epoch=1, owner=replace(this_process(), **other), beat_ts=0
    )
    assert (
        is_held(lease, now_us=1),
        is_held(lease, now_us=int(FOREIGN_BEAT_S * 1e6)),
    ) == held


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"epoch": 3}'])
def test_a_damaged_record_reads_as_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "lease.json").write_bytes(damage)
    assert current(tmp_path) is None
    assert read_record(tmp_path / "absent.json") is None


@pytest.mark.slow
@pytest.mark.spec("X6")
def test_of_many_processes_that_take_at_once_one_gets_the_lease(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    deadline = time.monotonic() + 60
    while (
        sum(racer.poll() is None for racer in racers) > 1
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    for racer in racers:
        racer.kill()
    results = [racer.communicate() for racer in racers]
    assert sorted(out for out, _ in results) == ["", "", "", "taken\n"]
    assert sum("FencedError" in err for _, err in results) == 3


def test_a_process_is_known_to_have_started_when_it_did():
    before_us = time.time_ns() // 1000
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    ) as child:
        owner = owner_of(child.pid)
        child.kill()
    assert owner is not None
    tick_us = 11_000
    assert before_us - tick_us <= start_of(owner) <= time.time_ns() // 1000
    elsewhere = replace(owner, boot="another")
    assert start_of(elsewhere) == int(owner.started_s * 1e6)
