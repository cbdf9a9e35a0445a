"""What people give to commands as a file of text, or on standard input."""

from pathlib import Path

import typer

from st_common.errors import ConfigError, QueryError


def read_text(file: Path) -> str:
    """The text of a file, of standard input for `-`; a byte-order mark is left out.

    Raises:
        ConfigError: the file cannot be read.
        QueryError: it is not UTF-8.
    """
    try:
        content = (
            typer.get_binary_stream("stdin").read()
            if str(file) == "-"
            else file.read_bytes()
        )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise QueryError(
            f"{file} is not UTF-8: byte {error.start}", hint="save it as UTF-8"
        ) from None
