"""Releases: what CHANGELOG.md lists as unreleased becomes a version, a commit and a tag."""

import subprocess
from pathlib import Path

import pytest

from tools.release import ReleaseError, newest, release, released

ROOT = Path(__file__).resolve().parents[2]
BEFORE = """# Changelog

## Unreleased

### Added

- a map

## 0.9.0 - 2026-01-02

### Added

- all else
"""
PROJECT = '[project]\nname = "fairway"\nversion = "0.9.0"\n'


def git(root, *arguments):
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(BEFORE)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "somebody")
    git(tmp_path, "config", "user.email", "somebody@localhost")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_what_is_unreleased_becomes_a_version():
    done = released(BEFORE, PROJECT, "0.10.0", "2026-11-27")
    assert done.changelog == BEFORE.replace(
        "## Unreleased\n", "## Unreleased\n\n## 0.10.0 - 2026-11-27\n"
    )
    assert 'version = "0.10.0"' in done.project
    assert done.section == "### Added\n\n- a map"
    assert newest(done.changelog) == "0.10.0"


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.9.0", "does not come behind 0.9.0"),
        ("0.8.9", "does not come behind 0.9.0"),
        ("1.0", "is no version"),
        ("v1.0.0", "is no version"),
        ("01.0.0", "is no version"),
    ],
)
def test_a_version_comes_behind_the_newest(version, why):
    with pytest.raises(ReleaseError, match=why):
        released(BEFORE, PROJECT, version, "2026-11-27")


def test_a_release_has_something_new():
    nothing = BEFORE.replace("### Added\n\n- a map\n", "")
    with pytest.raises(ReleaseError, match="nothing that is unreleased"):
        released(nothing, PROJECT, "1.0.0", "2026-11-27")


def test_a_release_is_a_commit_and_a_tag_that_says_what_is_new(repository):
    release(repository, "1.0.0")
    assert git(repository, "log", "-1", "--format=%s") == "Release 1.0.0"
    assert git(repository, "status", "--porcelain") == ""
    told = git(repository, "tag", "-l", "--format=%(contents)", "v1.0.0")
    assert told == "v1.0.0\n\n### Added\n\n- a map"
    with pytest.raises(ReleaseError, match="nothing that is unreleased"):
        release(repository, "1.0.1")


def test_what_is_not_committed_is_not_released(repository):
    (repository / "new.txt").write_text("")
    with pytest.raises(ReleaseError, match="not committed"):
        release(repository, "1.0.0")
    assert (repository / "CHANGELOG.md").read_text() == BEFORE


def test_the_version_of_the_package_is_the_newest_release():
    newest_release = newest((ROOT / "CHANGELOG.md").read_text())
    assert newest_release is None or (
        f'version = "{newest_release}"' in (ROOT / "pyproject.toml").read_text()
    )
