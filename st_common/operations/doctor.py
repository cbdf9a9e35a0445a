"""What Fairway needs of a machine, looked at before anything starts."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from st_common.config.environment import jars_dir
from st_common.contracts import contract_names, load_contract
from st_common.errors import FairwayError
from st_common.extras import has_module, how_to_install

JAVA_VERSIONS = (17, 21)
LEAST_MEMORY_BYTES = 6 << 30
LEAST_DISK_BYTES = 4 << 30
_GIB = 1 << 30


def findings(load_settings: Callable[[], object]) -> Iterator[tuple[str, str | None]]:
    """Looks at what Fairway needs of a machine, one thing after the other.

    Args:
        load_settings: reads the settings; a FairwayError of it is a problem like others.

    Yields:
        What was looked at, for people, and what is wrong with it; None: nothing.
    """
    version = sys.version_info
    yield (
        f"Python {version.major}.{version.minor}",
        None if version[:2] == (3, 11) else "Python 3.11 is needed",
    )
    if has_module("pyspark"):
        yield from _of_spark()
    else:
        yield f"engine local; engine spark: {how_to_install('spark')}", None
    yield (
        "data contracts",
        _problem(lambda: [load_contract(name) for name in contract_names()]),
    )
    yield "settings", _problem(load_settings)


def _of_spark() -> Iterator[tuple[str, str | None]]:
    """What the engine `spark` needs beside the package."""
    yield "Java", java_problem()
    yield "jars", jars_problem(jars_dir())
    memory = psutil.virtual_memory().total
    yield (
        f"memory {memory / _GIB:.1f} GiB",
        None if memory >= LEAST_MEMORY_BYTES else "6 GiB are needed",
    )
    free = shutil.disk_usage(Path.cwd()).free
    yield (
        f"disk {free / _GIB:.1f} GiB free",
        None if free >= LEAST_DISK_BYTES else "4 GiB are needed",
    )


def java_problem() -> str | None:
    """What is wrong with the Java on PATH, or None."""
    java = shutil.which("java")
    if java is None:
        return "there is none on PATH; install a JDK or JRE of version 17 or 21"
    said = subprocess.run(  # noqa: S603
        [java, "-version"], capture_output=True, text=True, check=False, timeout=30
    ).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) not in JAVA_VERSIONS:
        return f"version {version[1] if version else 'unknown'}; 17 or 21 is needed"
    return None


def jars_problem(folder: Path) -> str | None:
    """What is missing among the jars that Spark is given, or None."""
    missing = [
        name
        for name in ("delta-spark", "sedona-spark")
        if not list(folder.glob(f"{name}*.jar"))
    ]
    return (
        f"{' and '.join(missing)} missing in {folder}; `fairway init --spark` brings them"
        if missing
        else None
    )


def _problem(look: Callable[[], object]) -> str | None:
    try:
        look()
    except FairwayError as error:
        return str(error)
    return None
