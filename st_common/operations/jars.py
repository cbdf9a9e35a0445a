"""Spark's jars for an installation: from a folder or by Maven, and compared with the sums that came along."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from st_common.errors import ConfigError
from st_common.installed import shipped

_TIMEOUT_S = 1800


def sums() -> Mapping[str, str]:
    """The SHA-256 of each jar that Spark is given, as hexadecimal digits, by the file's name."""
    lines = shipped("requirements/jars.sha256").read_text(encoding="ascii").splitlines()
    pairs = (line.split() for line in lines)
    return {name: digits for digits, name in pairs}


def bring(target: Path, source: Path | None = None) -> list[str]:
    """Brings the jars that are not there yet, or are others, all or none.

    Args:
        target: the folder that they belong into; made where it is missing.
        source: a folder that has them, itself or below it; None: Maven fetches them.

    Returns:
        The names of those that were brought, sorted; none when all were there.

    Raises:
        ConfigError: `source` lacks one, a sum is another, or Maven is missing or fails.
    """
    wanted = {
        name: digits
        for name, digits in sums().items()
        if not _is(target / name, digits)
    }
    if not wanted:
        return []
    target.mkdir(parents=True, exist_ok=True)
    # Beside the others until all of them are known to be right.
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        if source is None:
            _fetch(Path(scratch))
        else:
            _copy(wanted, source, Path(scratch))
        for name, digits in wanted.items():
            _check(Path(scratch) / name, digits)
        for name in wanted:
            (Path(scratch) / name).replace(target / name)
    return sorted(wanted)


def _is(path: Path, digits: str) -> bool:
    return path.is_file() and _sum_of(path) == digits


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, digits: str) -> None:
    if not path.is_file():
        raise ConfigError(f"Maven did not bring {path.name}")
    if (found := _sum_of(path)) != digits:
        raise ConfigError(
            f"{path.name} has the SHA-256 {found} instead of {digits}",
            hint="it is another file than the one that was tried; nothing was changed",
        )


def _copy(names: Mapping[str, str], source: Path, target: Path) -> None:
    for name in names:
        path = next(iter(sorted(source.rglob(name))), None)
        if path is None:
            raise ConfigError(
                f"there is no {name} in {source}",
                hint=f"needed are {', '.join(names)}",
            )
        shutil.copyfile(path, target / name)


def _fetch(target: Path) -> None:
    """Lets Maven fetch what pom.xml names; it takes its mirrors from the user's own settings."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ConfigError(
            "Maven is not on PATH",
            hint="install it, or name a folder that has the jars by --from FOLDER",
        )
    shutil.copyfile(shipped("pom.xml"), target / "pom.xml")
    done = subprocess.run(  # noqa: S603 - what is started is on PATH
        [
            maven,
            "--quiet",
            "--batch-mode",
            "--strict-checksums",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={target}",
        ],
        cwd=target,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        said = next(iter((done.stdout + done.stderr).splitlines()), "")
        raise ConfigError(f"Maven ended with exit code {done.returncode}: {said}")
