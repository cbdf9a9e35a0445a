"""Makes a release of what CHANGELOG.md lists as unreleased: a version, a date, a commit and a tag.

usage: make release VERSION=1.2.3

    ## Unreleased          ## Unreleased
    ### Added
    - a map          ->    ## 1.2.3 - 2026-11-27
                           ### Added
                           - a map

The version in pyproject.toml follows; the tag is `v1.2.3`, and its message the section. Nothing is pushed.
"""

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_UNRELEASED = "## Unreleased\n"
_HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}$", re.MULTILINE)
_VERSION = re.compile(r'^version = "(.*)"$', re.MULTILINE)
_NUMBERS = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class ReleaseError(Exception):
    """What stands in the way of a release."""


@dataclass(frozen=True, slots=True)
class Released:
    """What a release writes.

    Attributes:
        changelog: the whole of CHANGELOG.md.
        project: the whole of pyproject.toml.
        section: what is new, as CHANGELOG.md says it.
    """

    changelog: str
    project: str
    section: str


def newest(changelog: str) -> str | None:
    """The newest version that was released; None before the first."""
    found = _HEADING.search(changelog)
    return found[1] if found else None


def released(changelog: str, project: str, version: str, day: str) -> Released:
    """What a release writes.

    Args:
        changelog: CHANGELOG.md as it is.
        project: pyproject.toml as it is.
        version: such as 1.2.3.
        day: such as 2026-11-27.

    Raises:
        ReleaseError: the version is none, or is not behind the newest; or nothing is new.
    """
    if not _NUMBERS.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version: write three numbers, as 1.2.3")
    before = newest(changelog)
    if before is not None and _numbers(version) <= _numbers(before):
        raise ReleaseError(f"{version} does not come behind {before}")
    head, _, rest = changelog.partition(_UNRELEASED)
    end = _HEADING.search(rest)
    section = (rest[: end.start()] if end else rest).strip()
    if not section:
        raise ReleaseError("CHANGELOG.md lists nothing that is unreleased")
    heading = f"\n## {version} - {day}\n"
    return Released(
        changelog=head + _UNRELEASED + heading + rest,
        project=_VERSION.sub(f'version = "{version}"', project, count=1),
        section=section,
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def release(root: Path, version: str) -> None:
    """Writes, commits and tags a release.

    Args:
        root: the folder of the repository.
        version: such as 1.2.3.

    Raises:
        ReleaseError: see `released`; or there are changes that are not committed.
    """
    if _git(root, "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed")
    changelog, project = root / "CHANGELOG.md", root / "pyproject.toml"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    done = released(changelog.read_text(), project.read_text(), version, day)
    changelog.write_text(done.changelog)
    project.write_text(done.project)
    _git(root, "commit", "--all", "-m", f"Release {version}", "-m", "See CHANGELOG.md.")
    tag = f"v{version}"
    _git(root, "tag", "-a", tag, "--cleanup=verbatim", "-m", f"{tag}\n\n{done.section}")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(done.stderr.strip() or done.stdout.strip())
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Makes the release that is named; gives back the exit code."""
    if len(arguments) != 1:
        print("usage: make release VERSION=1.2.3", file=sys.stderr)
        return 2
    try:
        release(Path.cwd(), arguments[0])
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"v{arguments[0]} is committed and tagged; push both")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
