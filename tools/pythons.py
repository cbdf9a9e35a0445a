"""Tries the package as it is installed, on each version of Python that it runs on; without Spark.

For each version: an environment of its own from `requirements/local-VERSION.lock`, by hashes; the wheel; then the first
command on the sample, and the tests of `TESTS`, in a folder from where this checkout's modules are not found.

usage: python tools/pythons.py [VERSION ..]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lock import PYTHONS

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
TESTS = ("areas", "clusters", "evaluation", "explore")
"""Files of tests/unit that need nothing else of this checkout's modules."""
_TRIED = (
    "try",
    "sample:ships",
    "SELECT * FROM ships INSIDE (24.945, 60.160, 24.965, 60.168)",
    "--answer",
)


class NotHereError(Exception):
    """A version of Python that this machine does not have."""


class WrongError(Exception):
    """A program that says something else than it should."""


def interpreter(version: str) -> Path:
    """The Python of a version: one of pyenv's, one on PATH, or the one that `make deep ARGS=pythons` has brought.

    Raises:
        NotHereError: there is none that runs.
    """
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(pyenv.glob(f"{version}.*/bin/{name}"))
    brought = ROOT / "jars" / "python" / version / "bin" / name
    for path in [*found[::-1], *filter(None, [shutil.which(name)]), brought]:
        if not Path(path).exists():
            continue
        done = subprocess.run([path, "--version"], capture_output=True, check=False)
        if done.returncode == 0:
            return Path(path)
    raise NotHereError(f"there is no {name} here: pyenv install {version}")


def built(folder: Path) -> Path:
    """The wheel and the sources as they are released, whose metadata are looked at; the wheel."""
    isolated = ("--no-build-isolation", "--python", sys.executable, "--quiet")
    _run(UV, "build", *isolated, "--out-dir", folder, ROOT)
    _run(sys.executable, "-m", "twine", "check", "--strict", *folder.glob("*-*"))
    (wheel,) = folder.glob("*.whl")
    return wheel


def tried(version: str, wheel: Path, folder: Path) -> None:
    """Installs the wheel beside what is locked, and tries it.

    Raises:
        NotHereError: there is no such Python.
        subprocess.CalledProcessError: something fails, and has said so.
    """
    made = folder / f"venv-{version}"
    python = made / "bin" / "python"
    lock = ROOT / "requirements" / f"local-{version}.lock"
    into = ("--quiet", "--python", python)
    _run(UV, "venv", "--quiet", "--python", interpreter(version), made)
    _run(UV, "pip", "sync", *into, "--require-hashes", lock)
    _run(UV, "pip", "install", *into, "--no-deps", wheel)
    _run(UV, "pip", "check", *into)
    away = folder / f"away-{version}"
    away.mkdir()
    program = made / "bin" / "fairway"
    _expect(r"fairway \d+\.\d+\.\d+\n", _said(program, "--version", cwd=away))
    _expect(r"object .*\nSUOKKI .*", _said(program, *_TRIED, cwd=away))
    _expect(
        r".*fairway replay example .*",
        _said(program, "init", "--home", "home", cwd=away),
    )
    files = [ROOT / "tests" / "unit" / f"test_{name}.py" for name in TESTS]
    options = (
        "-q",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestUnknownMarkWarning",
    )
    importing = ("--import-mode=importlib", "--rootdir", away, "-c", os.devnull)
    _run(python, "-m", "pytest", *options, *importing, *files, cwd=away)


def _expect(pattern: str, said: str) -> None:
    if not re.fullmatch(pattern, said, re.DOTALL):
        raise WrongError(f"expected {pattern!r}, it said {said!r}")


def _run(*words: object, cwd: Path = ROOT) -> None:
    subprocess.run([str(word) for word in words], check=True, cwd=cwd, env=_clean())


def _said(*words: object, cwd: Path) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(
        command, check=True, cwd=cwd, env=_clean(), stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _clean() -> dict[str, str]:
    """The environment without what names another Python, or another home."""
    outside = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYENV_VERSION"}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in outside and not name.startswith("FAIRWAY_")
    }


def main(versions: Sequence[str]) -> int:
    """Tries each version, tells how long it took; gives back how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="fairway-pythons-") as name:
        folder = Path(name)
        wheel = built(folder / "dist")
        for version in versions or PYTHONS:
            begun_s = time.monotonic()
            try:
                tried(version, wheel, folder)
                verdict = "ok"
            except (
                NotHereError,
                WrongError,
                subprocess.CalledProcessError,
            ) as error:
                failed, verdict = failed + 1, f"FAILED: {error}"
            took_s = time.monotonic() - begun_s
            print(f"Python {version}: {took_s:.0f} s: {verdict}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
