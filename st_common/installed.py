"""What is installed, and lies beside the modules: contracts, default settings, jars; in a wheel, or in a checkout."""

import sys
from pathlib import Path

from st_common.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent
DISTRIBUTION = "fairway-streams"
"""What the package is called where packages come from; it is imported as `fairway`, and the command is that too."""
SAMPLE = "sample:"
"""Begins the name of a file with records that comes with the package."""
_SHIPPED = _PACKAGE / "shipped"  # in a wheel, put there by setup.py


def own_version() -> str:
    """The version that is installed, such as 1.2.3."""
    from importlib.metadata import version  # slow to import, and seldom asked for

    return version(DISTRIBUTION)


def is_wheel() -> bool:
    """Whether this was installed from a wheel; False in a checkout, whose files people change."""
    return _SHIPPED.is_dir()


def shipped(name: str) -> Path:
    """Where a file or folder lies that every installation has, by its name in a checkout, such as `data_contracts`."""
    root = _SHIPPED if is_wheel() else _PACKAGE.parent
    return root / name


def place_of(place: str) -> str:
    """A place as it is; of `sample:NAME` the file with records that comes with the package.

    Raises:
        ConfigError: there is no such sample.
    """
    if not place.startswith(SAMPLE):
        return place
    name = place.removeprefix(SAMPLE)
    samples = {path.stem: str(path) for path in sample_file("").glob("*.csv")}
    if name not in samples:
        raise ConfigError(
            f"there is no sample {name!r}",
            hint=f"there is {', '.join(f'{SAMPLE}{one}' for one in sorted(samples))}",
        )
    return samples[name]


def sample_file(name: str) -> Path:
    """Where a file of the samples lies, by its name; of "" their folder."""
    return _PACKAGE / "samples" / name


def own_jars() -> Path:
    """Where Spark's jars lie if nobody says otherwise: `jars` in a checkout, `share/fairway/jars` in an environment."""
    if is_wheel():
        return Path(sys.prefix) / "share" / "fairway" / "jars"
    return _PACKAGE.parent / "jars"
