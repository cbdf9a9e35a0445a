"""What is logged, as lines: a message is one, whatever is in it, and what follows it of an error is indented."""

import logging

from st_common.errors import one_line


class _OneLine(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        """The message in one line."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging calls it so
        """The trace; what an error says begins no line of its own."""
        told = super().formatException(ei)  # type: ignore[arg-type] # what logging gives
        return "\n".join(f"  {one_line(line)}" for line in told.split("\n"))


def log_in_lines() -> None:
    """Has what nobody handles, which goes to standard error, logged in lines."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_OneLine())
