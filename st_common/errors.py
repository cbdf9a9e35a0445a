"""What can go wrong by wrong use; bad data never raises, it becomes a reject.

FairwayError            exit code 2
├── ConfigError         a file in conf/ or a command's argument
├── ContractError       a file in data_contracts/, or a table that does not match it
├── LogError            a stream's log: a hole, a repeat, a foreign file
├── TableError          one table: its log is damaged, or another program has made of it what is not read here
├── QueryError          the text of a query, or a name that is taken or unknown
├── LayerError          a layer file that cannot be read
├── StateError          an engine's state that cannot be used
├── QualityError        exit code 3: data below what its contract promises
├── FencedError         exit code 4: another owner has taken this stream over
├── SparkError          exit code 1: Spark's JVM failed, or a worker of it
├── StorageError        exit code 75: the disk is full, or refuses
│   └── ConflictError   somebody else replaced an object meanwhile
└── TransientError      exit code 75: trying again may help

MissingError            no object of a key: not for people, whoever asks knows what it means
"""


class FairwayError(Exception):
    """An error for people: one line that says what was wrong, with the value, and a hint what to do.

    Printed as `MESSAGE (HINT)`; a command ends with `exit_code`.

    Args:
        message: what was wrong, and where.
        hint: what to do; "" for none.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(FairwayError):
    """A setting or an argument is unknown, missing or out of its range."""


class ContractError(FairwayError):
    """A data contract is wrong, or a table differs from its contract."""


class LogError(FairwayError):
    """A stream's log has a hole, a repeat or a file that is not a segment."""


class TableError(FairwayError):
    """One table cannot be read or written; others are not concerned, and whoever goes over several goes on."""


class QueryError(FairwayError):
    """The text of a query cannot be understood, or names something unknown or taken."""


class LayerError(FairwayError):
    """A layer cannot be read, or is not known."""


class StateError(FairwayError):
    """An engine's state is of another version or another topology."""


class QualityError(FairwayError):
    """Data falls below what its contract promises."""

    exit_code = 3


class FencedError(FairwayError):
    """Another process owns this stream now."""

    exit_code = 4


class TransientError(FairwayError):
    """A try that failed for a reason that may pass."""

    exit_code = 75


class SparkError(FairwayError):
    """Spark has failed for a reason that nobody here knows."""

    exit_code = 1


class StorageError(FairwayError):
    """A file cannot be written or read: full, read-only, broken."""

    exit_code = 75


class ConflictError(StorageError):
    """Another process made or replaced an object that this one wanted to."""


class MissingError(LookupError):
    """There is no object of a key."""


def one_line(text: str) -> str:
    """A text as one line: what would end it, or move a terminal's cursor, as Python writes it in its texts."""
    if text.isprintable():
        return text
    letters = (
        letter if letter.isprintable() else repr(letter)[1:-1] for letter in text
    )
    return "".join(letters)
