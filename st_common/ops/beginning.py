"""The settings that a new home begins with."""

from pathlib import Path

from st_common.errors import ConfigError
from st_common.home import Home
from st_common.installed import sample_file, shipped


def begin(home: Home) -> list[Path]:
    """Makes a home folder with the settings that came with the package, to be changed; files that are there stay.

    They have one stream, of the sample that comes along; other examples are comments.

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
    """The text of a file of settings; the streams in it are comments, below one that can be run as it is."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if path.name != "streams.toml":
        return "".join(lines)
    example = sample_file("streams.toml").read_text(encoding="utf-8")
    rest = (line if _says_nothing(line) else f"# {line}" for line in lines)
    return example + "".join(rest)


def _says_nothing(line: str) -> bool:
    return line.startswith("#") or not line.strip()
