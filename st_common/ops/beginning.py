"""The settings that a new home begins with."""

import shutil
from pathlib import Path

from st_common.errors import ConfigError
from st_common.home import Home
from st_common.installed import shipped


def begin(home: Home) -> list[Path]:
    """Makes a home folder with the settings that came with the package, to be changed; files that are there stay.

    Returns:
        The files that were written, sorted.

    Raises:
        ConfigError: the home is a file.
    """
    if home.root.is_file():
        raise ConfigError(f"{home.root} is a file", hint="--home DIR names a folder")
    folder = home.root / "conf"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for template in sorted(shipped("conf").glob("*.toml")):
        target = folder / template.name
        if not target.exists():
            shutil.copyfile(template, target)
            written.append(target)
    return written
