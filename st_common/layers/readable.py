"""Which errors of reading a layer will stay, and which may pass (SPEC S3)."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from st_common.errors import FairwayError, LayerError, TransientError

_LASTING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
_NUMBER = re.compile(
    r"\(os error (\d+)\)|\[Errno (\d+)\]"
)  # as Rust and Arrow write it


@contextmanager
def readable() -> Iterator[None]:
    """What goes wrong within is told as one of two errors.

    Raises:
        TransientError: the system refused (memory, too many files, no permission, a disk that fails): it may pass.
        LayerError: a file is missing or damaged, or holds what is no layer: it will not.
    """
    try:
        yield
    except (LayerError, TransientError, MemoryError):
        raise
    except Exception as error:
        said = (
            error.message
            if isinstance(error, FairwayError)
            else f"{type(error).__name__}: {_line(error)}"
        )
        if _may_pass(error):
            raise TransientError(f"a layer cannot be read now: {said}") from error
        raise LayerError(said) from error


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def _may_pass(error: Exception) -> bool:
    """Whether the system gave an error number that says nothing of what the files hold."""
    number = error.errno if isinstance(error, OSError) else None
    match = _NUMBER.search(str(error)) if number is None else None
    if match is not None:
        number = int(match[1] or match[2])
    return number is not None and number not in _LASTING
