"""File systems of their own, to be filled, cut off and made read-only: for tools/faults.py. Needs root."""

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IMAGE_BYTES = 400 << 20
_IN_MEMORY = (
    "disk_full",
    "disk_full_spark",
    "tick_on_full_disk",
)
_ON_AN_IMAGE = ("power_cut", "read_only")
_SHUTDOWN, _WITHOUT_A_FLUSH = (
    0x8004587D,
    2,
)  # EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH


@contextmanager
def disk_of(fault: str, folder: Path) -> Iterator[Path]:
    """Where the home of a fault lies: in the folder, or on a file system of its own."""
    mount = folder / "disk"
    mount.mkdir()
    if fault in _ON_AN_IMAGE:
        with _image(mount).open("wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", _image(mount)], check=True)
        _mount(mount)
    elif fault in _IN_MEMORY:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", mount], check=True
        )
    try:
        yield mount
    finally:
        if fault in (*_ON_AN_IMAGE, *_IN_MEMORY):
            subprocess.run(["umount", "--lazy", mount], check=False)


@contextmanager
def filled(mount: Path) -> Iterator[None]:
    """Takes what is left of a disk, and gives it back."""
    filler = mount / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * (64 << 10))
    yield
    filler.unlink()


def cut_power(folder: Path) -> None:
    """The file system of a folder stops at once and forgets what was not synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_A_FLUSH))
    os.close(descriptor)


def turn_read_only(mount: Path) -> None:
    """The kernel comes upon an error of the file system, and takes no write from then on."""
    found = subprocess.run(
        ["findmnt", "-no", "SOURCE", mount], check=True, capture_output=True, text=True
    )
    device = Path(found.stdout.strip()).name
    if not device.startswith("loop"):
        raise OSError(f"{mount} is on {device}, not on a file system of its own")
    (Path("/sys/fs/ext4") / device / "trigger_fs_error").write_text("faults")


def mount_again(mount: Path) -> None:
    """As a machine does that starts again: the file system is checked and mounted."""
    subprocess.run(["umount", mount], check=True)
    subprocess.run(["e2fsck", "-p", _image(mount)], check=False, capture_output=True)
    _mount(mount)


def _mount(mount: Path) -> None:
    subprocess.run(
        ["mount", "-o", "loop,errors=remount-ro", _image(mount), mount], check=True
    )


def _image(mount: Path) -> Path:
    return mount.with_suffix(".img")
