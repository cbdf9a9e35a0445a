"""What takes long is shared out over five commits: all of it, and to each about as much."""

from pathlib import Path

import pytest

from tests.kit.shares import (
    COMMITS,
    read_seconds,
    share_of_name,
    shares_of_files,
)

TESTS = Path(__file__).resolve().parents[1]
SECONDS = read_seconds((TESTS / "whole_files.txt").read_text())


def test_the_longest_goes_where_least_has_come_together():
    seconds = {"e": 3, "a": 9, "b": 5, "d": 4, "f": 2, "c": 4}
    shares = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 4}
    assert shares_of_files(seconds) == shares


def test_every_file_that_is_run_as_a_whole_has_its_seconds_and_no_other():
    folders = ("airflow", "browser", "e2e")
    files = {file for name in folders for file in (TESTS / name).glob("test_*.py")}
    files.add(TESTS / "dags" / "test_runs.py")
    assert set(SECONDS) == {file.relative_to(TESTS).as_posix() for file in files}


def test_no_commit_has_much_more_to_do_than_another():
    shares = shares_of_files(SECONDS)
    sums = [
        sum(SECONDS[file] for file, share in shares.items() if share == number)
        for number in range(COMMITS)
    ]
    assert max(sums) <= max(1.25 * sum(sums) / COMMITS, *SECONDS.values())


def test_names_are_shared_out_too():
    assert {share_of_name(f"test_{number}") for number in range(50)} == set(
        range(COMMITS)
    )


@pytest.mark.parametrize("text", ["e2e/test_kill.py\n", "long e2e/test_kill.py\n"])
def test_a_line_without_seconds_is_an_error(text):
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        read_seconds(text)
