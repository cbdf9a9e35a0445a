"""Whether a file is what its stream's settings say, found on a sample of it before any of it goes into the log."""

from pathlib import Path

from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.replay.files import wall_clock
from st_common.replay.sample import Sample, sample_of
from st_common.replay.source import opened
from st_common.replay.tally import Tally

_FORCED = "--force puts it into the log all the same"


def refuse_unreadable(
    path: Path, stream: StreamSettings, *, name: str | None = None
) -> str:
    """Makes sure that a file is what its stream's settings say, by the sample that `fairway check` looks at, too.

    A format in which a fault in one place spoils all that follows is read to its end. An empty file is fine.

    Args:
        path: the file, packed by gzip or not.
        stream: the settings.
        name: what people call the file; None: by its path.

    Returns:
        What is odd about the dates of a few of its fixes; "": nothing.

    Raises:
        ConfigError: the file cannot be opened, or more than half of the records looked at cannot be read; it says the
            main reason, the first record that has it, and what is likely to mend it. Or most are dated before 1990 or
            beyond tomorrow (`replay.odd_dates`).
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
            hint=f"{tally.mend(stream)}; {_FORCED}",
        )
    odd = tally.odd_dates(stream)
    if odd is not None and odd.is_question:
        raise ConfigError(f"{name}: {odd.said}", hint=f"{odd.mend}; {_FORCED}")
    return "" if odd is None or odd.is_count else f"{name}: {odd.said}"


def whole_sample_of(path: Path, stream: StreamSettings, name: str) -> Sample:
    """The sample of a file that has no fault after which nothing can be read.

    Raises:
        ConfigError: it has one; or it cannot be read.
    """
    _refuse_broken(path, stream, name)
    return sample_of(path, stream)


def _refuse_broken(path: Path, stream: StreamSettings, name: str) -> None:
    """A fault after which nothing can be read, wherever it is; few formats have one."""
    with opened(path, encoding=stream.encoding) as file:
        try:
            format_of(stream.format).check_whole(file.source)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error.message}", hint=error.hint) from None
