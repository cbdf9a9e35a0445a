"""Who owns a stream: one lease per stream, with an epoch that only grows.

Neither Airflow nor Spark keeps two engines from one checkpoint. So an engine takes the lease before it starts, which is
refused while the owner lives, and looks at it before each batch: an owner of a higher epoch means that it was taken
over, and it must stop without another commit.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from st_common.errors import FencedError
from st_common.operations.process import Owner, can_look_at, lives, this_process
from st_common.operations.records import held_lock, read_record, write_record

LEASE_FILE = "lease.json"
FOREIGN_BEAT_S = 120.0
"""An owner on another host or in another container, whose process cannot be looked at, counts as living this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one process to run one stream or delivery.

    Attributes:
        folder: of the stream or delivery.
        epoch: grows by one with each owner.
        owner: the process.
        beat_ts: when it said last that it lives, us since 1970.
        released: it gave the lease back.
    """

    folder: Path
    epoch: int
    owner: Owner
    beat_ts: int
    released: bool = False


def named(folder: Path) -> str:
    """What lies in a folder, for people: "stream 'taxis'", "delivery 'alarms'"."""
    return f"{'delivery' if folder.parent.name == 'deliveries' else 'stream'} {folder.name!r}"


def current(folder: Path) -> Lease | None:
    """The newest lease of a stream, its owner living or not.

    Returns:
        None when nobody ever took one, or its file is torn.
    """
    record = read_record(folder / LEASE_FILE)
    owner = Owner.from_json(record) if record else None
    if record is None or owner is None:
        return None
    return Lease(
        folder=folder,
        epoch=int(record.get("epoch", 0)),
        owner=owner,
        beat_ts=int(record.get("beat_ts", 0)),
        released=bool(record.get("released", False)),
    )


def is_held(lease: Lease, *, now_us: int) -> bool:
    """Whether the owner still uses its lease: not given back, and the process lives.

    Args:
        lease: the newest one.
        now_us: now, us since 1970. A process on another host counts as living for two minutes after its last beat.
    """
    if lease.released:
        return False
    if can_look_at(lease.owner):
        return lives(lease.owner)
    # a beat from far ahead is older than a clock that was set back since: whoever lives beats by the clock of now
    return abs(now_us - lease.beat_ts) < FOREIGN_BEAT_S * 1e6


def take(folder: Path, *, now_us: int, force: bool = False) -> Lease:
    """Makes this process the owner of the stream, with the next epoch.

        A takes it: epoch 1.   A hangs, its machine is given up; B takes it with `force`: epoch 2.
        A wakes up: `check` finds epoch 2 and raises FencedError, before A commits.

    Args:
        folder: the stream's folder, `Home.stream(name)`; made when it is absent.
        now_us: now, us since 1970.
        force: take it from a living owner, who will notice before its next batch.

    Raises:
        FencedError: another living process owns the stream.
    """
    with held_lock(folder / ".lease.lock"):
        before = current(folder)
        me = this_process()
        if (
            before is not None
            and not force
            and before.owner != me
            and is_held(before, now_us=now_us)
        ):
            raise FencedError(
                f"{named(folder)} is run by process {before.owner.pid} on {before.owner.host}",
                hint="stop that one first; a stream has one engine, a delivery one process",
            )
        lease = Lease(
            folder=folder,
            epoch=before.epoch + 1 if before else 1,
            owner=me,
            beat_ts=now_us,
        )
        _write(lease)
        return lease


def check(lease: Lease) -> None:
    """Looks whether this lease is still the newest; one small file read, cheap enough for every batch.

    Raises:
        FencedError: another process took the stream over, or the lease file is gone.
    """
    now = current(lease.folder)
    if now is not None and now.epoch == lease.epoch and now.owner == lease.owner:
        return
    newer = (
        f"process {now.owner.pid} on {now.owner.host}, epoch {now.epoch}"
        if now
        else "nobody: its lease was removed"
    )
    raise FencedError(
        f"{named(lease.folder)} of epoch {lease.epoch} belongs to {newer}",
        hint="this process stops without another commit; nothing is lost",
    )


def beat(lease: Lease, *, now_us: int) -> Lease:
    """Checks the lease and records that its owner lives.

    Args:
        lease: of this process.
        now_us: now, us since 1970.

    Returns:
        The renewed lease.

    Raises:
        FencedError: as `check`; the newer owner's lease is left as it is.
    """
    with held_lock(lease.folder / ".lease.lock"):
        check(lease)
        renewed = replace(lease, beat_ts=now_us)
        _write(renewed)
        return renewed


def release(lease: Lease) -> None:
    """Gives the stream back at an orderly end; the epoch stays, so that the next owner's is higher.

    Does nothing when somebody else owns the stream by now.
    """
    with held_lock(lease.folder / ".lease.lock"):
        now = current(lease.folder)
        if now is not None and now.epoch == lease.epoch:
            _write(replace(now, released=True))


def _write(lease: Lease) -> None:
    record = {
        "epoch": lease.epoch,
        **lease.owner.to_json(),
        "beat_ts": lease.beat_ts,
        "released": lease.released,
    }
    write_record(lease.folder / LEASE_FILE, record)
