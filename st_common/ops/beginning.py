"""The settings that a new home begins with."""

from pathlib import Path

from st_common.errors import ConfigError
from st_common.home import Home
from st_common.installed import shipped


def begin(home: Home) -> list[Path]:
    """Makes a home folder with the settings that came with the package, to be changed; files that are there stay.

    The example streams are written as comments.

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
            target.write_text(_template(template), encoding="utf-8")
            written.append(target)
    return written


def _template(path: Path) -> str:
    """The text of a file of settings; the streams in it are examples, which nobody wants to run: they are comments."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if path.name != "streams.toml":
        return "".join(lines)
    return "".join(line if _says_nothing(line) else f"# {line}" for line in lines)


def _says_nothing(line: str) -> bool:
    return line.startswith("#") or not line.strip()
