"""What lies beside the modules: contracts, default settings, the list of jars; in a wheel, or in a checkout."""

import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"  # in a wheel, put there by setup.py


def is_wheel() -> bool:
    """Whether this was installed from a wheel; False in a checkout, whose files people change."""
    return _SHIPPED.is_dir()


def shipped(name: str) -> Path:
    """Where a file or folder lies that every installation has, by its name in a checkout, such as `data_contracts`."""
    root = _SHIPPED if is_wheel() else _PACKAGE.parent
    return root / name


def own_jars() -> Path:
    """Where Spark's jars lie if nobody says otherwise: `jars` in a checkout, `share/fairway/jars` in an environment."""
    if is_wheel():
        return Path(sys.prefix) / "share" / "fairway" / "jars"
    return _PACKAGE.parent / "jars"
