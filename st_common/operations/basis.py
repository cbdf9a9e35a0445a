"""What it depends on whether a process can start: settings, packages, environment; a digest shows that they changed.

A process that ended for wrong settings is not tried again and again, but once more when this digest is another.
"""

import hashlib
import os
import re
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from st_common.config.environment import jars_dir

_VARIABLES = (
    "FAIRWAY_CONTRACTS",
    "FAIRWAY_JARS",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
)  # no others: Airflow and service managers set some anew for each tick


def basis_of(conf: Path) -> str:
    """A digest of the files in `conf`, of what is installed, and of the environment.

    Packages count by what pip notes of each, and when it did: an engine may leave files of its own beside them. Of
    variables that the settings name, secrets as a rule, it counts whether they are set.

    Args:
        conf: the folder of the settings; one that is absent counts as empty.
    """
    texts = [path.read_bytes() for path in sorted(conf.glob("*.toml"))]
    named = re.findall(r"\w+", b"\n".join(texts).decode(errors="replace"))
    return digest(*texts, *_installed(), *_environment(frozenset(named)))


def digest(*parts: bytes | str) -> str:
    """The SHA-256 of some parts, in hexadecimal digits; where one ends and the next begins counts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        whole.update(b"%d:" % len(data) + data)
    return whole.hexdigest()


def _installed() -> Iterator[str]:
    """Packages and jars with the times of their installation, and which Java there is."""
    packages = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    noted = [path for folder in packages for path in folder.glob("*.dist-info")]
    for path in sorted([*noted, *jars_dir().glob("*.jar")]):
        with suppress(FileNotFoundError):  # it is being replaced
            yield f"{path} {path.stat().st_mtime_ns}"
    yield str(shutil.which("java"))


def _environment(named: frozenset[str]) -> Iterator[str]:
    for name, value in sorted(os.environ.items()):
        if name in _VARIABLES:
            yield f"{name}={value}"
        elif name in named:
            yield name
