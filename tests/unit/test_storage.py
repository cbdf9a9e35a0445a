"""The port to the place where a home lies: created once, replaced for a known one, whole at any time."""

import errno
import os
from pathlib import Path

import pytest

from st_common.errors import ConflictError, MissingError, StorageError
from st_common.storage import LocalStorage, local


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "home")


def test_an_object_is_created_once(storage: LocalStorage) -> None:
    assert storage.create("a/b", b"first")
    assert not storage.create("a/b", b"second")
    assert storage.read("a/b") == b"first"
    assert [storage.read("a/b", start=1, length=3), storage.read("a/b", start=9)] == [
        b"irs",
        b"",
    ]
    assert (storage.exists("a/b"), storage.exists("a/c"), storage.names("a")) == (
        True,
        False,
        ["b"],
    )


def test_what_is_not_there_is_missing(storage: LocalStorage) -> None:
    with pytest.raises(MissingError):
        storage.read("a")
    assert (storage.tagged("a"), storage.names("a")) == (None, [])
    storage.delete("a")
    storage.sync("a")


def test_several_objects_become_visible_after_all_are_stored(
    storage: LocalStorage,
) -> None:
    def objects():
        yield "a/1", b"1"
        assert storage.names("a") == []
        yield "a/2", b"2"

    assert storage.create_all(objects())
    assert not storage.create_all([("a/1", b"x"), ("a/3", b"x")])
    assert storage.names("a") == ["1", "2"]
    with pytest.raises(ConflictError):
        storage.create_all([("a/3", b"x"), ("a/2", b"x")])


def test_an_object_is_replaced_only_for_the_one_that_was_read(
    storage: LocalStorage,
) -> None:
    tag = storage.replace("a", b"1", tag=None)
    with pytest.raises(ConflictError):
        storage.replace("a", b"2", tag=None)
    newer = storage.replace("a", b"2", tag=tag)
    with pytest.raises(ConflictError):
        storage.replace("a", b"3", tag=tag)
    assert storage.tagged("a") == (b"2", newer)
    storage.put("a", b"4")
    assert storage.read("a") == b"4"


@pytest.mark.spec("S2")
def test_nothing_has_a_name_before_its_bytes_and_its_folders_are_synced(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, link = os.fsync, os.link
    names = {
        storage.root.parent.parent: "above all",
        storage.root.parent: "above",
        storage.root: "home",
        storage.root / "a": "a",
    }

    def synced(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        done.append(f"sync {names.get(path, 'bytes')}")
        sync(fd)

    def linked(source: Path, target: Path) -> None:
        done.append(f"name {target.name}")
        link(source, target)

    monkeypatch.setattr("st_common.storage.local.os.fsync", synced)
    monkeypatch.setattr("st_common.storage.local.os.link", linked)
    with storage.locked(
        "lock"
    ):  # whoever waits for a lock has made the folder that it lies in
        assert done == ["sync above all", "sync above"]
        done.clear()
        storage.create("a/b", b"1")  # whoever made `home` may have died at once
    assert done == ["sync above", "sync home", "sync bytes", "name b", "sync a"]
    done.clear()
    storage.create_all(
        [("a/c", b"1"), ("a/d", b"2")]
    )  # no name is durable before those in front of it
    assert done == ["sync bytes", "sync bytes", "name c", "sync a", "name d", "sync a"]


def test_a_failed_write_leaves_nothing(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.create("a/b", b"1")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("st_common.storage.local.os.fsync", full)
    for write in (
        lambda: storage.create("a/c", b"1"),
        lambda: storage.put("a/b", b"2"),
    ):
        with pytest.raises(
            StorageError, match=r"No space left on device .*free some space"
        ):
            write()
    assert (list((storage.root / "a").iterdir()), storage.read("a/b")) == (
        [storage.root / "a" / "b"],
        b"1",
    )


def test_a_folder_that_is_read_only_is_there_and_who_writes_into_it_is_told(
    tmp_path, monkeypatch
):
    def read_only(_fd: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    (tmp_path / "there").mkdir()
    monkeypatch.setattr(local.os, "fsync", read_only)
    local.make_folder(tmp_path / "there")
    with pytest.raises(StorageError, match="Read-only"):
        LocalStorage(tmp_path).create("there/new", b"x")
    with pytest.raises(OSError, match="Read-only") as refused:
        local._sync_folder(tmp_path / "there")
    assert refused.value.filename == str(tmp_path / "there")
