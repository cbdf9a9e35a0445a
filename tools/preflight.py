"""Looks at the machine before anything is set up: one clear line for each thing that is missing, and exit code 2."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

GB = 10**9
MEMORY_GB = 6
DISK_GB = 4
JAVA_VERSIONS = (17, 21)
NODE_VERSION = 20


def python_problem() -> str | None:
    """What is wrong with `python3.11`, if anything."""
    name = os.environ.get("PYTHON", "python3.11")
    found = _first_line(
        [
            name,
            "-c",
            "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])",
        ]
    )
    if found == "3.11":
        return None
    what = (
        f"{name} is Python {found}"
        if found and found[0].isdigit()
        else f"{name} with venv was not found"
    )
    return f"Python 3.11 is needed: {what} (install it, or name it: make PYTHON=/path/to/python3.11)"


def java_problem() -> str | None:
    """What is wrong with the Java that Spark would start: JAVA_HOME's first, then the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    text = _first_line([java, "-version"])
    match = re.search(r'version "(\d+)', text or "")
    hint = "install a JDK or JRE of 17 or 21, or set JAVA_HOME to one"
    if not match:
        return f"Java 17 or 21 is needed: {java} does not start ({hint})"
    if int(match[1]) in JAVA_VERSIONS:
        return None
    return f"Java 17 or 21 is needed: {java} is Java {match[1]} ({hint})"


def maven_problem() -> str | None:
    """Whether Maven, which fetches Spark's jars, is missing."""
    return (
        None
        if shutil.which("mvn")
        else "Maven is needed: mvn was not found (install the package maven)"
    )


def node_problem() -> str | None:
    """Whether Node and npm, which build the page, are missing or too old, where there is a page to build."""
    if not Path("web").is_dir():
        return None
    match = re.match(r"v(\d+)", _first_line(["node", "--version"]) or "")
    hint = f"install Node {NODE_VERSION} or newer, with npm"
    if not match:
        return f"Node {NODE_VERSION} is needed: node does not start ({hint})"
    if int(match[1]) < NODE_VERSION:
        return f"Node {NODE_VERSION} is needed: node is {match[0]} ({hint})"
    return None if shutil.which("npm") else f"npm is needed: it was not found ({hint})"


def memory_problem() -> str | None:
    """Whether the machine, or the container, has too little memory for a driver and its workers."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        size = min(size, int(text))
    return _too_little(
        "memory", size, "FAIRWAY_MIN_MEMORY_GB", MEMORY_GB, "this machine"
    )


def disk_problem() -> str | None:
    """Whether the disk under this folder is too full for two environments, the jars and the tests' tables."""
    return _too_little(
        "free disk",
        shutil.disk_usage(Path.cwd()).free,
        "FAIRWAY_MIN_DISK_GB",
        DISK_GB,
        Path.cwd(),
    )


def _too_little(
    what: str, size: int, variable: str, default: int, where: str | Path
) -> str | None:
    wanted = float(os.environ.get(variable, default))
    if size >= wanted * GB:
        return None
    return f"{wanted:g} GB of {what} are needed: {where} has {size / GB:.1f} GB (to try with less: {variable}=N)"


def _first_line(command: list[str]) -> str | None:
    """The first line of what a command says; None when it cannot be started or says nothing."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if not line.startswith("Picked up ")
    ]
    return lines[0].strip() if lines else None


def main() -> int:
    """Prints the problems; gives back 0 when there are none, else 2."""
    checks = (
        python_problem,
        java_problem,
        maven_problem,
        node_problem,
        memory_problem,
        disk_problem,
    )
    problems = [problem for check in checks if (problem := check())]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
