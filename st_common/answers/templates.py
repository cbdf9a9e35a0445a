"""Pages that need no network, from templates that lie beside the code."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_in(folder: Path) -> Environment:
    """The templates of a folder. They escape what they show; a name that nobody gives is an error.

    Args:
        folder: it holds the files.

    Returns:
        With the filters `number` (12,345) and `tenths` (12,345.6).
    """
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = "{:,}".format
    environment.filters["tenths"] = "{:,.1f}".format
    return environment
