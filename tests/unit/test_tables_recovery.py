"""Tables after power cuts: torn newest commits are cut off, and one of two committers at the same place is refused."""

import multiprocessing
import os
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import ConflictError, FairwayError, FencedError
from st_common.tables.durable import log_name

pytestmark = pytest.mark.spec("S2")
CONTRACT = load_contract("rejects")


def _rows(number: int) -> pa.Table:
    schema = CONTRACT.arrow_schema()
    fields = [field for field in schema if not field.name.endswith("_date")]
    values = {
        "segment": number,
        "row": 0,
        "arrival_ts": number,
        "stream": "s",
        "reason": "bad_time",
        "raw": b"x",
        "line": None,
    }
    return pa.table(
        {field.name: pa.array([values[field.name]], field.type) for field in fields}
    )


def _append(path: Path, number: int, **more) -> bool:
    return tables.append(
        path, _rows(number), CONTRACT, app="engine", version=number, **more
    )


def _filled(tmp_path: Path, commits: int) -> Path:
    path = tmp_path / "rejects"
    for number in range(commits):
        _append(path, number)
    return path


def _segments(path: Path) -> list[int]:
    return sorted(tables.read(path)["segment"].to_pylist())


def test_a_whole_table_stays_as_it_is(tmp_path: Path) -> None:
    path = _filled(tmp_path, 3)
    assert tables.recover(path) is None
    assert tables.recover(tmp_path / "none") is None
    assert (_segments(path), tables.committed(path, "engine")) == ([0, 1, 2], 2)


@pytest.mark.parametrize(
    "torn", [b"", b'{"commitInfo":{"ti', b"\0" * 300], ids=["empty", "half", "zeros"]
)
@pytest.mark.parametrize("count", [1, 2])
def test_torn_newest_versions_are_cut_off_and_written_again(
    tmp_path: Path, torn: bytes, count: int
) -> None:
    path = _filled(tmp_path, 4)
    newest = tables.version(path)
    for version in range(newest - count + 1, newest + 1):
        (path / "_delta_log" / log_name(version)).write_bytes(torn)
    notice = tables.recover(path)
    assert notice is not None
    assert f"versions {newest - count + 1} to {newest} were torn" in notice
    assert tables.committed(path, "engine") == 3 - count
    for number in range(4 - count, 4):
        assert _append(path, number, after=number - 1)
    assert _segments(path) == [0, 1, 2, 3]


def test_a_version_whose_rows_were_cut_goes_with_all_behind_it(tmp_path: Path) -> None:
    path = _filled(tmp_path, 3)
    files = sorted(
        path.glob("**/part-*.parquet"), key=lambda file: file.stat().st_mtime_ns
    )
    files[1].write_bytes(files[1].read_bytes()[:50])
    assert tables.recover(path) is not None
    assert (_segments(path), tables.committed(path, "engine")) == ([0], 0)
    assert tables.recover(path) is None


@pytest.mark.parametrize("lost", [0, 1], ids=["first", "middle"])
@pytest.mark.parametrize(
    ("how", "told"),
    [("empty", "cannot be read"), ("gone", "is missing")],
    ids=["empty", "gone"],
)
def test_a_hole_below_whole_versions_is_an_error_with_the_way_out(
    tmp_path: Path, lost: int, how: str, told: str
) -> None:
    path = _filled(tmp_path, 3)
    file = path / "_delta_log" / log_name(lost)
    file.write_bytes(b"") if how == "empty" else file.unlink()
    for derived, way_out in ((True, "doctor --repair` has"), (False, "restore the")):
        with pytest.raises(FairwayError) as refused:
            tables.recover(path, derived=derived)
        assert f"version {lost} in its log {told}" in refused.value.message
        assert refused.value.hint.startswith(("`fairway " + way_out, way_out))
    assert len(tables.damage(path)) == 1
    assert log_name(lost) in tables.damage(path)[0]
    assert tables.whole_version(path) == lost - 1


def test_commits_that_were_cleaned_away_behind_a_checkpoint_are_no_hole(
    tmp_path: Path,
) -> None:
    path = _filled(tmp_path, 3)
    tables.checkpoint(path, keeps_commits=True)
    _append(path, 3)
    for version in range(3):
        (path / "_delta_log" / log_name(version)).unlink()
    tables.handle.forget(path)
    assert tables.recover(path) is None
    assert (tables.damage(path), _segments(path)) == ([], [0, 1, 2, 3])


def test_a_torn_checkpoint_is_done_without(tmp_path: Path) -> None:
    path = _filled(tmp_path, 2)
    log = path / "_delta_log"
    (log / f"{1:020d}.checkpoint.parquet").write_bytes(b"PAR1")
    (log / "_last_checkpoint").write_bytes(b"")
    assert tables.recover(path) is None
    assert (_segments(path), list(log.glob("*checkpoint*"))) == ([0, 1], [])


def test_a_table_whose_first_version_is_torn_begins_anew(tmp_path: Path) -> None:
    path = _filled(tmp_path, 1)
    for file in (path / "_delta_log").glob("*.json"):
        file.write_bytes(b"")
    assert tables.recover(path) is not None
    assert tables.committed(path, "engine") is None
    assert _append(path, 0, after=-1)
    assert _segments(path) == [0]


def test_of_two_committers_at_the_same_place_one_is_refused(tmp_path: Path) -> None:
    path = _filled(tmp_path, 1)
    assert _append(path, 5, after=0)
    with pytest.raises(ConflictError, match="engine stands at 5, not at 0"):
        _append(path, 7, after=0)
    assert _segments(path) == [0, 5]


def test_who_is_no_owner_any_more_commits_nothing(tmp_path: Path) -> None:
    def refuse() -> None:
        raise FencedError("taken over")

    path = _filled(tmp_path, 1)
    with pytest.raises(FencedError):
        _append(path, 1, after=0, check=refuse)
    assert _segments(path) == [0]


def test_files_are_durable_before_the_commit_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _filled(tmp_path, 1)
    done: list[tuple[str, int]] = []
    real = tables.durable._sync

    def synced(file: Path) -> None:
        done.append((file.name, tables.durable.newest_version(path)))
        real(file)

    monkeypatch.setattr("st_common.tables.durable._sync", synced)
    _append(path, 1)
    rows = [version for name, version in done if name.startswith("part-")]
    commits = [(name, version) for name, version in done if name.endswith(".json")]
    assert rows == [1]
    assert commits == [(log_name(2), 2)]
    assert done[-3:] == [("_delta_log", 2), ("rejects", 2), (tmp_path.name, 2)]


def test_what_a_killed_process_committed_is_durable_before_the_next_version_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave the next version, without the one that it was built on."""
    path = _filled(tmp_path, 1)
    killed = multiprocessing.get_context("spawn").Process(
        target=_killed_before_it_synced, args=(path,)
    )
    killed.start()
    killed.join()
    assert killed.exitcode == 9
    assert tables.durable.newest_version(path) == 2
    done: list[tuple[str, int]] = []
    real = tables.durable._sync

    def synced(file: Path) -> None:
        real(file)
        done.append((file.name, tables.durable.newest_version(path)))

    monkeypatch.setattr("st_common.tables.durable._sync", synced)
    _append(path, 2)
    assert (log_name(2), 2) in done
    before = [name for name, newest in done if newest == 2]
    assert before.index(log_name(2)) < before.index("_delta_log")
    assert done[-4:] == [
        (log_name(3), 3),
        ("_delta_log", 3),
        ("rejects", 3),
        (tmp_path.name, 3),
    ]


def _killed_before_it_synced(path: Path) -> None:
    with patch("st_common.tables.active.sync_log", lambda _path: os._exit(9)):
        _append(path, 1)


def test_a_version_that_was_cut_off_is_durably_gone_before_others_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _filled(tmp_path, 3)
    (path / "_delta_log" / log_name(3)).write_bytes(b"")
    done: list[tuple[str, int]] = []
    real = tables.durable._sync

    def synced(file: Path) -> None:
        real(file)
        done.append((file.name, tables.durable.newest_version(path)))

    monkeypatch.setattr("st_common.tables.durable._sync", synced)
    assert tables.recover(path) is not None
    assert done[0] == ("_delta_log", 2)
