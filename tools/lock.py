"""Compiles requirements/*.in to *.lock with hashes and without any address; `--check` compares instead of writing."""

import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path("requirements")
UV = Path(sys.executable).with_name("uv")
PYTHON = "3.11"
"""What the locks without a version are for."""
PYTHONS = (PYTHON, "3.12", "3.13", "3.14")
"""What the package is tested on: tools/pythons.py."""
COMPILE = (
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--quiet",
)
# In this order: jobs and core (what is deployed) take their versions from dev (what is tested).
OPTIONS: dict[str, tuple[str, ...]] = {
    "bootstrap": (),
    "dev": (),
    "jobs": (f"--constraint={FOLDER / 'dev.lock'}",),
    "core": (f"--constraint={FOLDER / 'dev.lock'}",),
    "airflow": (),
    "demo": ("--no-deps",),
    **{
        f"local-{version}": (f"--constraint={FOLDER / 'dev.lock'}",)
        for version in PYTHONS
    },
}


def compile_lock(name: str, target: Path, *extra: str) -> None:
    """Compiles one lock into `target`; the versions that stand there already are kept where they fit."""
    of, _, python = name.partition("-")
    options = (
        f"--python-version={python or PYTHON}",
        *COMPILE,
        *OPTIONS[name],
        *extra,
        f"--output-file={target}",
    )
    subprocess.run(
        [str(UV), "pip", "compile", *options, str(FOLDER / f"{of}.in")],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def problems_of(name: str, scratch: Path) -> list[str]:
    """What is wrong with a lock: it differs from what its .in file gives over it, or it names an address."""
    lock = FOLDER / f"{name}.lock"
    fresh = scratch / lock.name
    shutil.copy(lock, fresh)
    compile_lock(name, fresh)
    old, new = lock.read_text().splitlines(), fresh.read_text().splitlines()
    addresses = [
        f"{lock}:{i}: {line}"
        for i, line in enumerate(old, 1)
        if "://" in line or line.startswith("--")
    ]
    changes = [
        line
        for line in difflib.unified_diff(old, new, lineterm="", n=0)
        if line[:3] not in {"---", "+++"}
    ]
    if not changes:
        return addresses
    return [
        *addresses,
        f"{lock}: not what {name.partition('-')[0]}.in gives (run: make lock)\n  "
        + "\n  ".join(changes[:20]),
    ]


def main(arguments: list[str]) -> int:
    """Writes all locks, or checks them; gives back the exit code."""
    if arguments[:1] != ["--check"]:
        for name in OPTIONS:
            compile_lock(name, FOLDER / f"{name}.lock", *arguments)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        problems = [
            problem for name in OPTIONS for problem in problems_of(name, Path(scratch))
        ]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"locks: {len(OPTIONS)} checked, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
