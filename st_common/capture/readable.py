"""Whether a file is what its stream's settings say, found on a sample of it before any of it goes into the log."""

from pathlib import Path

from st_common.capture.files import wall_clock
from st_common.capture.sample import Sample, sample_of
from st_common.capture.source import is_packed, open_file
from st_common.capture.tally import Tally
from st_common.decode.gzipped import GzipSource
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.settings import StreamSettings

_FIRST_BYTES = 1 << 18


def refuse_unreadable(
    path: Path, stream: StreamSettings, *, name: str | None = None
) -> None:
    """Makes sure that a file is what its stream's settings say, by the sample that `fairway check` looks at, too.

    A format in which a fault in one place spoils all that follows is read to its end. An empty file is fine.

    Args:
        path: the file, packed by gzip or not.
        stream: the settings.
        name: what people call the file; None: by its path.

    Raises:
        ConfigError: the file cannot be opened, or more than half of the records looked at cannot be read; it says the
            main reason, the first record that has it, and what is likely to mend it.
    """
    name = str(path) if name is None else name
    sample = whole_sample_of(path, stream, name)
    tally = Tally()
    tally.add_sample(sample, stream, arrival_us=wall_clock())
    if tally.is_mostly_rejected:
        number = f"{tally.records:,} records of {name}"
        of_what = f"the {number}" if sample.is_whole else f"{number} looked at"
        raise ConfigError(
            tally.message(stream.name, of_what),
            hint=f"{tally.mend(stream)}; --force puts it into the log all the same",
        )


def whole_sample_of(path: Path, stream: StreamSettings, name: str) -> Sample:
    """The sample of a file that has no fault after which nothing can be read.

    Raises:
        ConfigError: it has one; or it cannot be read, or all of it is one line because its line ends are not seen.
    """
    _refuse_broken(path, stream, name)
    sample = sample_of(path, stream)
    if not sample.payloads:
        _refuse_one_line(path, stream, name)
    return sample


def _refuse_broken(path: Path, stream: StreamSettings, name: str) -> None:
    """A fault after which nothing can be read, wherever it is; few formats have one."""
    with open_file(path) as raw:
        source = GzipSource(raw) if is_packed(raw) else raw
        try:
            format_of(stream.format).check_whole(source)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from None


def _refuse_one_line(path: Path, stream: StreamSettings, name: str) -> None:
    """A file without a record is fine, unless all of it is one line because its line ends are not seen."""
    with open_file(path) as raw:
        head = raw.read(_FIRST_BYTES)
    if b"\r" in head.rstrip(b"\r\n") and b"\n" not in head:
        message = f"{name} has no record for stream {stream.name!r}: its lines end in a carriage return alone"
        raise ConfigError(
            message,
            hint="convert it, as with tr '\\r' '\\n'; --force puts it into the log all the same",
        )
